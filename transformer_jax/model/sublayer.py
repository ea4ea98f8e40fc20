"""The residual connection around every sub-layer: LayerNorm(x + Dropout(f(x))) (§3.1, §5.4)."""

from collections.abc import Callable

import flax.linen as nn
import jax

from transformer_jax.model.config import ModelConfig
from transformer_jax.model.dropout import Dropout


def layer_norm(config: ModelConfig) -> nn.LayerNorm:
  """Layer normalisation (Ba et al. 2016)."""
  return nn.LayerNorm(epsilon=config.layer_norm_epsilon, dtype=config.dtype.value)


class Sublayer(nn.Module):
  """LayerNorm(x + Dropout(f(x))), or by option x + Dropout(f(LayerNorm(x))).

  `input` and `output` are its two halves, for an f that gives more than its output.
  """

  config: ModelConfig

  def setup(self):
    self.norm = layer_norm(self.config)
    self.dropout = Dropout(self.config.dropout)

  def input(self, x: jax.Array) -> jax.Array:
    """What f sees."""
    return self.norm(x) if self.config.pre_norm else x

  def output(self, x: jax.Array, y: jax.Array, *, deterministic: bool) -> jax.Array:
    """What becomes of x and y = f(input(x))."""
    x = x + self.dropout(y, deterministic=deterministic)
    return x if self.config.pre_norm else self.norm(x)

  def __call__(self, x: jax.Array, f: Callable[[jax.Array], jax.Array], *, deterministic: bool) -> jax.Array:
    """`[..., model]` -> `[..., model]`."""
    return self.output(x, f(self.input(x)), deterministic=deterministic)
