"""The gated recurrent unit as in Bahdanau et al. 2015 (A.1.1; Cho et al. 2014)."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.model.config import Dtype
from transformer_jax.recurrent.linear import product, side_by_side
from transformer_jax.recurrent.recurrence import recurrence, zeros


class GRU(nn.Module):
  r"""One layer.

    z_t = sigmoid(x_t W_z + s_(t-1) U_z)               how much is new
    r_t = sigmoid(x_t W_r + s_(t-1) U_r)               how much of the past the proposal sees
    s_t = (1 - z_t) * s_(t-1) + z_t * tanh(x_t W + (r_t * s_(t-1)) U)

  with a bias each, which the paper leaves out of its equations.

  Attributes:
    input_size: of x.
    hidden_size: of s.
    dtype: the type of matrix products.
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

  def __call__(self, x: jax.Array, restarts: jax.Array, *, reverse: bool = False) -> jax.Array:
    """All positions of a row, from a state of zeros in each sentence.

    Args:
      x: `[length, input]`.
      restarts: `[length]` booleans, true at the first token that is read of each sentence.
      reverse: read from the last position to the first.

    Returns:
      The states after each position, `[length, hidden]` float32.
    """
    return recurrence(GRU.advance, self, self.inputs(x), restarts, zeros(len(x), self.hidden_size), reverse=reverse)

  def inputs(self, x: jax.Array) -> jax.Array:
    """What x adds to z, r and the proposal, in one product for all positions: `[..., 3 hidden]`."""
    sums = product(x, self.kernel, self.dtype)
    return sums + jnp.broadcast_to(self.bias, sums.shape)

  def advance(self, state: jax.Array, inputs: jax.Array) -> jax.Array:
    """One position, from what `inputs` gives of its x."""
    hidden = self.hidden_size
    gates, proposal = jnp.split(inputs, [2 * hidden], axis=-1)
    z, r = jnp.split(jax.nn.sigmoid(gates + product(state, self.recurrent, self.dtype)), 2, axis=-1)
    proposal = jnp.tanh(proposal + product(r * state, self.proposal, self.dtype))
    return (1 - z) * state + z * proposal
