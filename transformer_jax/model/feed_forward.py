"""Position-wise feed-forward network (§3.3, eq. 2)."""

import flax.linen as nn
import jax

from transformer_jax.config import ModelConfig


class FeedForward(nn.Module):
  """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, the same at each position: `[..., model]` -> `[..., model]`."""

  config: ModelConfig

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    dtype = self.config.dtype.value
    glorot = nn.initializers.glorot_uniform()
    hidden = nn.relu(nn.Dense(self.config.d_ff, kernel_init=glorot, dtype=dtype, name="inner")(x))  # [..., hidden]
    return nn.Dense(self.config.d_model, kernel_init=glorot, dtype=dtype, name="outer")(hidden)
