"""A stack of LSTMs, with dropout between the layers but not between positions (Zaremba et al. 2014)."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.model.config import Dtype
from transformer_jax.model.dropout import Dropout
from transformer_jax.recurrent.lstm import LSTM, State

# The state of each layer, the lowest first.
States = tuple[State, ...]


class Stack(nn.Module):
  """Each layer reads the outputs of the one below it.

  Attributes:
    input_size: the width of the lowest layer's input.
    hidden_size: the width of each layer's state.
    num_layers: the number of layers.
    dropout: applied between the layers. The caller applies it to the stack's input and output.
    dtype: the type of matmuls.
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
    """The lowest layer's `LSTM.inputs` for all positions at once, which `advance` needs."""
    return self.lstm[0].inputs(x)

  def advance(self, states: States, inputs: jax.Array, kept: jax.Array | None = None) -> States:
    """One position.

    Args:
      states: the states before the position.
      inputs: the method's result for the position.
      kept: `[layers - 1, hidden]`, the position's `dropout_factors`; None turns dropout off.
    """
    new = [self.lstm[0].advance(states[0], inputs)]
    for i, (layer, state) in enumerate(zip(self.lstm[1:], states[1:], strict=True)):
      below = new[-1].hidden if kept is None else new[-1].hidden * kept[i]
      new.append(layer.advance(state, layer.inputs(below)))
    return tuple(new)

  def dropout_factors(self, length: int, *, deterministic: bool) -> jax.Array | None:
    """The factors of the outputs between layers: `[length, layers - 1, hidden]`; None without dropout."""
    if deterministic or not self.dropout:
      return None
    return self.between(jnp.ones((length, self.num_layers - 1, self.hidden_size)), deterministic=False)
