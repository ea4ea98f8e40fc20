"""The simple recurrent network (Elman 1990)."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.model.config import Dtype
from transformer_jax.recurrent.linear import matmul
from transformer_jax.recurrent.recurrence import recurrence, zeros


class RNN(nn.Module):
  """One layer: h_t = tanh(x_t W + h_(t-1) U + b).

  Attributes:
    input_size: the width of x.
    hidden_size: the width of h.
    dtype: the type of matmuls.
  """

  input_size: int
  hidden_size: int
  dtype: Dtype

  def setup(self):
    hidden = self.hidden_size
    self.kernel = self.param("kernel", nn.initializers.glorot_uniform(), (self.input_size, hidden))
    self.recurrent = self.param("recurrent", nn.initializers.orthogonal(), (hidden, hidden))
    self.bias = self.param("bias", nn.initializers.zeros, (hidden,))

  def __call__(
    self, x: jax.Array, restarts: jax.Array, initial: jax.Array | None = None, *, reverse: bool = False
  ) -> jax.Array:
    """All positions of a row; the arguments are those of `GRU`.

    Returns:
      The states after each position, `[length, hidden]` float32.
    """
    initial = zeros(x.shape[0], self.hidden_size) if initial is None else initial
    return recurrence(RNN.advance, self, self.inputs(x), restarts, initial, reverse=reverse)

  def inputs(self, x: jax.Array) -> jax.Array:
    """x W + b, in one matmul for all positions, as it needs no state: `[..., hidden]`."""
    sums = matmul(x, self.kernel, self.dtype)
    return sums + jnp.broadcast_to(self.bias, sums.shape)

  def advance(self, state: jax.Array, inputs: jax.Array) -> jax.Array:
    """One position; `inputs` is the method's result for its x."""
    return jnp.tanh(inputs + matmul(state, self.recurrent, self.dtype))
