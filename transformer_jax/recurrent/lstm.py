"""The LSTM (Hochreiter and Schmidhuber 1997), with the forget gate of Gers et al. 2000."""

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.recurrent.layer import Layer
from transformer_jax.recurrent.linear import matmul, side_by_side


class State(NamedTuple):
  """The state of an LSTM.

  Attributes:
    hidden: h, `[..., hidden]` float32, which is the output, too.
    cell: c, `[..., hidden]` float32.
  """

  hidden: jax.Array
  cell: jax.Array


def _forget_bias(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
  """1 for the forget gates, so that the cell forgets little at first (Jozefowicz et al. 2015); 0 for the others."""
  del key
  hidden = shape[0] // 4
  return jnp.zeros(shape).at[hidden : 2 * hidden].set(1)


class LSTM(Layer[State]):
  """One layer; the inputs of its gates i, f, g and o are x_t W + h_(t-1) U + b.

  i, f, o = sigmoid(...)    g = tanh(...)    c_t = f * c_(t-1) + i * g    h_t = o * tanh(c_t)
  """

  def setup(self):
    gates = 4 * self.hidden_size
    glorot, orthogonal = nn.initializers.glorot_uniform(), nn.initializers.orthogonal()
    self.kernel = self.param("kernel", side_by_side(glorot, 4), (self.input_size, gates))
    self.recurrent = self.param("recurrent", side_by_side(orthogonal, 4), (self.hidden_size, gates))
    self.bias = self.param("bias", _forget_bias, (gates,))

  def zeros(self, length: int) -> State:
    return State(*(jnp.zeros((length, self.hidden_size)) for _ in State._fields))

  def advance(self, state: State, inputs: jax.Array) -> State:
    i, f, g, o = jnp.split(inputs + matmul(state.hidden, self.recurrent, self.dtype), 4, axis=-1)
    cell = jax.nn.sigmoid(f) * state.cell + jax.nn.sigmoid(i) * jnp.tanh(g)
    return State(jax.nn.sigmoid(o) * jnp.tanh(cell), cell)
