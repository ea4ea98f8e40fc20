"""The gated recurrent unit as in Bahdanau et al. 2015 (A.1.1; Cho et al. 2014)."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.recurrent.layer import Layer
from transformer_jax.recurrent.linear import matmul, side_by_side


class GRU(Layer[jax.Array]):
  r"""One layer.

    z_t = sigmoid(x_t W_z + s_(t-1) U_z)               the update gate
    r_t = sigmoid(x_t W_r + s_(t-1) U_r)               the reset gate
    s_t = (1 - z_t) * s_(t-1) + z_t * tanh(x_t W + (r_t * s_(t-1)) U)

  Each of the three has a bias, which the paper leaves out of its equations.
  """

  def setup(self):
    hidden = self.hidden_size
    glorot, orthogonal = nn.initializers.glorot_uniform(), nn.initializers.orthogonal()
    self.kernel = self.param("kernel", side_by_side(glorot, 3), (self.input_size, 3 * hidden))
    self.recurrent = self.param("recurrent", side_by_side(orthogonal, 2), (hidden, 2 * hidden))
    self.proposal = self.param("proposal", orthogonal, (hidden, hidden))
    self.bias = self.param("bias", nn.initializers.zeros, (3 * hidden,))

  def advance(self, state: jax.Array, inputs: jax.Array) -> jax.Array:
    hidden = self.hidden_size
    gates, proposal = jnp.split(inputs, [2 * hidden], axis=-1)
    z, r = jnp.split(jax.nn.sigmoid(gates + matmul(state, self.recurrent, self.dtype)), 2, axis=-1)
    proposal = jnp.tanh(proposal + matmul(r * state, self.proposal, self.dtype))
    return (1 - z) * state + z * proposal
