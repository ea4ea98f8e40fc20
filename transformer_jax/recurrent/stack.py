"""LSTMs on top of one another, with dropout on the way up and none on the way on (Zaremba et al. 2014)."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.model.config import Dtype
from transformer_jax.model.dropout import Dropout
from transformer_jax.recurrent.lstm import LSTM, State

# Of each layer, the lowest first.
States = tuple[State, ...]


class Stack(nn.Module):
  """Each layer reads the outputs of the one below it.

  Attributes:
    input_size: of the lowest layer's input.
    hidden_size: of each layer's state.
    num_layers: how many.
    dropout: between the layers; that of the lowest one's input and of the top one's output is the caller's.
    dtype: the type of matrix products.
  """

  input_size: int
  hidden_size: int
  num_layers: int
  dropout: float
  dtype: Dtype

  def setup(self):
    sizes = [self.input_size, *[self.hidden_size] * (self.num_layers - 1)]
    self.lstm = [LSTM(size, self.hidden_size, self.dtype) for size in sizes]
    self.between = Dropout(self.dropout)

  def __call__(
    self,
    x: jax.Array,
    restarts: jax.Array,
    initial: States | None = None,
    *,
    reverse: bool = False,
    deterministic: bool,
  ) -> States:
    """All positions, layer by layer: `[length, input]` -> each layer's states `[length, hidden]`; see `LSTM`."""
    states: list[State] = []
    for i, layer in enumerate(self.lstm):
      if states:
        x = self.between(states[-1].hidden, deterministic=deterministic)
      states.append(layer(x, restarts, initial[i] if initial else None, reverse=reverse))
    return tuple(states)

  def inputs(self, x: jax.Array) -> jax.Array:
    """What `advance` needs of the lowest layer's inputs, of all positions at once."""
    return self.lstm[0].inputs(x)

  def advance(self, states: States, inputs: jax.Array, kept: jax.Array | None = None) -> States:
    """One position.

    Args:
      states: before it.
      inputs: what `inputs` gives of it.
      kept: `[layers - 1, hidden]`, the position's `dropout_factors`; None is without dropout.
    """
    new = [self.lstm[0].advance(states[0], inputs)]
    for i, (layer, state) in enumerate(zip(self.lstm[1:], states[1:], strict=True)):
      below = new[-1].hidden if kept is None else new[-1].hidden * kept[i]
      new.append(layer.advance(state, layer.inputs(below)))
    return tuple(new)

  def dropout_factors(self, length: int, *, deterministic: bool) -> jax.Array | None:
    """What the outputs between layers are multiplied by: `[length, layers - 1, hidden]`; None is without dropout."""
    if deterministic or not self.dropout:
      return None
    return self.between(jnp.ones((length, self.num_layers - 1, self.hidden_size)), deterministic=False)
