"""The residual connection around every sub-layer: LayerNorm(x + Dropout(f(x))) (§3.1, §5.4)."""

from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.model.config import ModelConfig
from transformer_jax.model.dropout import Dropout


class LayerNorm(nn.LayerNorm):
  """(x - mean(x)) / sqrt(var(x) + epsilon) * scale + bias over the last axis (Ba et al. 2016); statistics in float32.

  Flax computes the variance as E[x^2] - E[x]^2, of which float32 leaves little where the mean is large beside the
  spread: at 1,000 spreads the output is off by 0.4. The output does not change when a constant is taken from x. So
  the mean, as a constant, is taken from x first: the output is then exact to 1e-6 for any mean, and the gradients,
  to which a constant adds nothing, cost what they did.
  """

  def __call__(self, x: jax.Array) -> jax.Array:  # pyright: ignore[reportIncompatibleMethodOverride]  without masks
    """`[..., model]` -> `[..., model]`, of type `dtype`."""
    x = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    return super().__call__(x - jax.lax.stop_gradient(jnp.mean(x, axis=-1, keepdims=True)))


def layer_norm(config: ModelConfig) -> LayerNorm:
  """The layer normalisation of a model."""
  return LayerNorm(epsilon=config.layer_norm_epsilon, dtype=config.dtype.value)


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
