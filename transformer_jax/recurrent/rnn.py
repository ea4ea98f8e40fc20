"""The simple recurrent network (Elman 1990)."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.recurrent.layer import Layer
from transformer_jax.recurrent.linear import matmul


class RNN(Layer[jax.Array]):
  """One layer: h_t = tanh(x_t W + h_(t-1) U + b)."""

  def setup(self):
    hidden = self.hidden_size
    self.kernel = self.param("kernel", nn.initializers.glorot_uniform(), (self.input_size, hidden))
    self.recurrent = self.param("recurrent", nn.initializers.orthogonal(), (hidden, hidden))
    self.bias = self.param("bias", nn.initializers.zeros, (hidden,))

  def advance(self, state: jax.Array, inputs: jax.Array) -> jax.Array:
    return jnp.tanh(inputs + matmul(state, self.recurrent, self.dtype))
