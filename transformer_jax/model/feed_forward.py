"""Position-wise feed-forward network (§3.3, eq. 2)."""

import functools

import flax.linen as nn
import jax

from transformer_jax.model.config import Activation, ModelConfig

ACTIVATIONS = {
  Activation.RELU: nn.relu,
  Activation.GELU: functools.partial(nn.gelu, approximate=False),
  Activation.GELU_TANH: functools.partial(nn.gelu, approximate=True),
}


class FeedForward(nn.Module):
  """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, the same at each position: `[..., model]` -> `[..., model]`.

  `config.activation` puts another function in the place of max(0, x).
  """

  config: ModelConfig

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    dtype = self.config.dtype.value
    glorot = nn.initializers.glorot_uniform()
    hidden = nn.Dense(self.config.d_ff, kernel_init=glorot, dtype=dtype, name="inner")(x)  # [..., hidden]
    hidden = ACTIVATIONS[self.config.activation](hidden)
    return nn.Dense(self.config.d_model, kernel_init=glorot, dtype=dtype, name="outer")(hidden)
