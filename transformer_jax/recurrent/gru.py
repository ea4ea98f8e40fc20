"""The gated recurrent unit as in Bahdanau et al. 2015 (A.1.1; Cho et al. 2014)."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.model.config import Dtype
from transformer_jax.recurrent.linear import matmul, side_by_side
from transformer_jax.recurrent.recurrence import recurrence, zeros


class GRU(nn.Module):
  r"""One layer.

    z_t = sigmoid(x_t W_z + s_(t-1) U_z)               the update gate
    r_t = sigmoid(x_t W_r + s_(t-1) U_r)               the reset gate
    s_t = (1 - z_t) * s_(t-1) + z_t * tanh(x_t W + (r_t * s_(t-1)) U)

  Each of the three has a bias, which the paper leaves out of its equations.

  Attributes:
    input_size: the width of x.
    hidden_size: the width of s.
    dtype: the type of matmuls.
  """

  input_size: int
  hidden_size: int
  dtype: Dtype

  def setup(self):
    hidden = self.hidden_size
    glorot, orthogonal = nn.initializers.glorot_uniform(), nn.initializers.orthogonal()
    self.kernel = self.param("kernel", side_by_side(glorot, 3), (self.input_size, 3 * hidden))
    self.recurrent = self.param("recurrent", side_by_side(orthogonal, 2), (hidden, 2 * hidden))
    self.proposal = self.param("proposal", orthogonal, (hidden, hidden))
    self.bias = self.param("bias", nn.initializers.zeros, (3 * hidden,))

  def __call__(
    self, x: jax.Array, restarts: jax.Array, initial: jax.Array | None = None, *, reverse: bool = False
  ) -> jax.Array:
    """All positions of a row.

    Args:
      x: `[length, input]`.
      restarts: `[length]` booleans, true at each sentence's first token in the order of reading.
      initial: the state before each sentence, at its first token, `[length, hidden]`; None is zeros.
      reverse: read from the last position to the first.

    Returns:
      The states after each position, `[length, hidden]` float32.
    """
    initial = zeros(x.shape[0], self.hidden_size) if initial is None else initial
    return recurrence(GRU.advance, self, self.inputs(x), restarts, initial, reverse=reverse)

  def inputs(self, x: jax.Array) -> jax.Array:
    """x W_z, x W_r and x W with their biases, in one matmul for all positions: `[..., 3 hidden]`."""
    sums = matmul(x, self.kernel, self.dtype)
    return sums + jnp.broadcast_to(self.bias, sums.shape)

  def advance(self, state: jax.Array, inputs: jax.Array) -> jax.Array:
    """One position; `inputs` is the method's result for its x."""
    hidden = self.hidden_size
    gates, proposal = jnp.split(inputs, [2 * hidden], axis=-1)
    z, r = jnp.split(jax.nn.sigmoid(gates + matmul(state, self.recurrent, self.dtype)), 2, axis=-1)
    proposal = jnp.tanh(proposal + matmul(r * state, self.proposal, self.dtype))
    return (1 - z) * state + z * proposal
