"""Position-wise feed-forward network (§3.3, eq. 2)."""

import functools

import flax.linen as nn
import jax

from transformer_jax.model.config import Activation, ModelConfig
from transformer_jax.model.promotion import promote_operands
from transformer_jax.ops import shared_matmul

ACTIVATIONS = {
  Activation.RELU: nn.relu,
  Activation.GELU: functools.partial(nn.gelu, approximate=False),
  Activation.GELU_TANH: functools.partial(nn.gelu, approximate=True),
  Activation.SWISH: nn.swish,
}


class FeedForward(nn.Module):
  """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, the same at each position: `[..., model]` -> `[..., model]`.

  `config.activation` can replace max(0, x) by another function.
  """

  config: ModelConfig

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    hidden = self._dense(x, self.config.d_ff, "inner")  # [..., hidden]
    hidden = ACTIVATIONS[self.config.activation](hidden)
    return self._dense(hidden, self.config.d_model, "outer")

  def _dense(self, x: jax.Array, features: int, name: str) -> jax.Array:
    dense = nn.Dense(
      features,
      kernel_init=nn.initializers.glorot_uniform(),
      dtype=self.config.dtype.value,
      dot_general=shared_matmul.dot_general,
      promote_dtype=promote_operands,
      name=name,
    )
    return dense(x).astype(self.config.dtype.value)
