"""The LSTM (Hochreiter and Schmidhuber 1997), with the forget gate of Gers et al. 2000."""

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.model.config import Dtype
from transformer_jax.recurrent.linear import matmul, side_by_side
from transformer_jax.recurrent.recurrence import recurrence, zeros


class State(NamedTuple):
  """The state of an LSTM.

  Attributes:
    hidden: h, `[..., hidden]` float32, which is the output, too.
    cell: c, `[..., hidden]` float32.
  """

  hidden: jax.Array
  cell: jax.Array


def lstm_cell(gates: jax.Array, cell: jax.Array) -> State:
  r"""One step, given the inputs of the gates.

    i, f, o = sigmoid(...)    g = tanh(...)    c_t = f * c_(t-1) + i * g    h_t = o * tanh(c_t)

  Args:
    gates: `[..., 4 hidden]` float32, the inputs of i, f, g and o.
    cell: c_(t-1), `[..., hidden]` float32.
  """
  i, f, g, o = jnp.split(gates, 4, axis=-1)
  cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
  return State(jax.nn.sigmoid(o) * jnp.tanh(cell), cell)


def _forget_bias(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
  """1 for the forget gates, so that the cell forgets little at first (Jozefowicz et al. 2015); 0 for the others."""
  del key
  hidden = shape[0] // 4
  return jnp.zeros(shape).at[hidden : 2 * hidden].set(1)


class LSTM(nn.Module):
  """One layer: the inputs of the gates are x_t W + h_(t-1) U + b.

  Attributes:
    input_size: the width of x.
    hidden_size: the width of h and c.
    dtype: the type of matmuls.
  """

  input_size: int
  hidden_size: int
  dtype: Dtype

  def setup(self):
    gates = 4 * self.hidden_size
    glorot, orthogonal = nn.initializers.glorot_uniform(), nn.initializers.orthogonal()
    self.kernel = self.param("kernel", side_by_side(glorot, 4), (self.input_size, gates))
    self.recurrent = self.param("recurrent", side_by_side(orthogonal, 4), (self.hidden_size, gates))
    self.bias = self.param("bias", _forget_bias, (gates,))

  def __call__(
    self, x: jax.Array, restarts: jax.Array, initial: State | None = None, *, reverse: bool = False
  ) -> State:
    """All positions of a row.

    Args:
      x: `[length, input]`.
      restarts: `[length]` booleans, true at each sentence's first token in the order of reading.
      initial: the state before each sentence, at its first token; arrays `[length, hidden]`; None is zeros.
      reverse: read from the last position to the first.

    Returns:
      The states after each position, `[length, hidden]` each.
    """
    if initial is None:
      initial = State(*(zeros(x.shape[0], self.hidden_size) for _ in State._fields))
    return recurrence(LSTM.advance, self, self.inputs(x), restarts, initial, reverse=reverse)

  def inputs(self, x: jax.Array) -> jax.Array:
    """x W + b, in one matmul for all positions, as it needs no state: `[..., 4 hidden]`."""
    gates = matmul(x, self.kernel, self.dtype)
    return gates + jnp.broadcast_to(self.bias, gates.shape)

  def advance(self, state: State, inputs: jax.Array) -> State:
    """One position; `inputs` is the method's result for its x."""
    return lstm_cell(inputs + matmul(state.hidden, self.recurrent, self.dtype), state.cell)
