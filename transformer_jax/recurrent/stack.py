"""A stack of recurrent layers, with dropout between the layers but not between positions (Zaremba et al. 2014)."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.model.config import Dtype
from transformer_jax.model.dropout import Dropout
from transformer_jax.recurrent import lstm
from transformer_jax.recurrent.config import Cell
from transformer_jax.recurrent.gru import GRU
from transformer_jax.recurrent.lstm import LSTM
from transformer_jax.recurrent.rnn import RNN
from transformer_jax.runtime.values import PyTree

LAYERS = {Cell.LSTM: LSTM, Cell.GRU: GRU, Cell.RNN: RNN}
# The state of each layer, the lowest first: `lstm.State`, or one array `[..., hidden]` with another cell.
States = tuple[PyTree, ...]


def top(states: States) -> jax.Array:
  """The output of the highest of these layers, h: `[..., hidden]`."""
  highest = states[-1]
  return highest.hidden if isinstance(highest, lstm.State) else highest


class Stack(nn.Module):
  """Each layer reads the outputs of the one below it.

  Attributes:
    input_size: the width of the lowest layer's input.
    hidden_size: the width of each layer's state.
    num_layers: the number of layers.
    dropout: applied between the layers. The caller applies it to the stack's input and output.
    dtype: the type of matmuls.
    cell: the unit of all layers.
  """

  input_size: int
  hidden_size: int
  num_layers: int
  dropout: float
  dtype: Dtype
  cell: Cell = Cell.LSTM

  def setup(self):
    sizes = [self.input_size, *[self.hidden_size] * (self.num_layers - 1)]
    layer, cell = LAYERS[self.cell], self.cell.value
    self.layers = [layer(size, self.hidden_size, self.dtype, name=f"{cell}_{i}") for i, size in enumerate(sizes)]
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
    """All positions, layer by layer: `[length, input]` -> each layer's states `[length, hidden]`; see `layer.Layer`."""
    states: States = ()
    for i, layer in enumerate(self.layers):
      if states:
        x = self.between(top(states), deterministic=deterministic)
      states = (*states, layer(x, restarts, initial[i] if initial else None, reverse=reverse))
    return states

  def inputs(self, x: jax.Array) -> jax.Array:
    """The lowest layer's `inputs` for all positions at once, which `advance` needs."""
    return self.layers[0].inputs(x)

  def advance(self, states: States, inputs: jax.Array, kept: jax.Array | None = None) -> States:
    """One position.

    Args:
      states: the states before the position.
      inputs: `self.inputs(x)` of the position.
      kept: `[layers - 1, hidden]`, the position's `dropout_factors`; None turns dropout off.
    """
    new: States = (self.layers[0].advance(states[0], inputs),)
    for i, (layer, state) in enumerate(zip(self.layers[1:], states[1:], strict=True)):
      below = top(new) if kept is None else top(new) * kept[i]
      new = (*new, layer.advance(state, layer.inputs(below)))
    return new

  def dropout_factors(self, length: int, *, deterministic: bool) -> jax.Array | None:
    """The factors of the outputs between layers: `[length, layers - 1, hidden]`; None without dropout."""
    if deterministic or not self.dropout:
      return None
    return self.between(jnp.ones((length, self.num_layers - 1, self.hidden_size)), deterministic=False)
