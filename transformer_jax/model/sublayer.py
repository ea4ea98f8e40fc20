"""The residual connection around every sub-layer: LayerNorm(x + Dropout(f(x))) (§3.1, §5.4)."""

from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.model.config import ModelConfig
from transformer_jax.model.dropout import Dropout


class LayerNorm(nn.LayerNorm):
  """(x - mean(x)) / sqrt(var(x) + epsilon) * scale + bias over the last axis (Ba et al. 2016); statistics in float32.

  Flax computes the variance as E[x^2] - E[x]^2. That is inaccurate in float32 where the mean is large: if it is 1,000
  times the standard deviation, the output has an error of 0.4. The output does not change when a constant is
  subtracted from x, so the mean is subtracted first. The output is then exact to 1e-6 for any mean. For the gradients
  the mean is a constant, so they cost as much as before.
  """

  def __call__(self, x: jax.Array) -> jax.Array:  # pyright: ignore[reportIncompatibleMethodOverride]  without masks
    """`[..., model]` -> `[..., model]` in `dtype`."""
    x = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    return super().__call__(x - jax.lax.stop_gradient(jnp.mean(x, axis=-1, keepdims=True)))


def layer_norm(config: ModelConfig) -> LayerNorm:
  """The layer normalisation of a model."""
  return LayerNorm(epsilon=config.layer_norm_epsilon, dtype=config.dtype.value)


class Sublayer(nn.Module):
  """What is around a sub-layer f, "Add & Norm" in Figure 1: LayerNorm(x + Dropout(f(x))), or by option
  x + Dropout(f(LayerNorm(x))). The paper's Sublayer(x) is f(x).

  `input` and `output` are its two halves, for an f with more than one result.
  """

  config: ModelConfig

  def setup(self):
    self.norm = layer_norm(self.config)
    self.dropout = Dropout(self.config.dropout)

  def input(self, x: jax.Array) -> jax.Array:
    """The input of f."""
    return self.norm(x) if self.config.pre_norm else x

  def output(self, x: jax.Array, y: jax.Array, *, deterministic: bool) -> jax.Array:
    """The sub-layer's output, from x and y = f(input(x))."""
    x = x + self.dropout(y, deterministic=deterministic)
    return x if self.config.pre_norm else self.norm(x)

  def __call__(self, x: jax.Array, f: Callable[[jax.Array], jax.Array], *, deterministic: bool) -> jax.Array:
    """`[..., model]` -> `[..., model]`."""
    return self.output(x, f(self.input(x)), deterministic=deterministic)
