"""Positional encoding (§3.5): sinusoids, or a learned table (Table 3, row E)."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.model.config import ModelConfig


def sinusoids(positions: jax.Array, d_model: int) -> jax.Array:
  """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos of the same.

  Args:
    positions: `[...]` integers from 0, of any size.
    d_model: the width, an even number.

  Returns:
    `[..., d_model]` float32, sine and cosine interleaved as printed in the paper.

  Example:
    >>> print((100 * sinusoids(jnp.array([0, 1]), d_model=4)).round())
    [[  0. 100.   0. 100.]
     [ 84.  54.   1. 100.]]
  """
  exponents = jnp.arange(0, d_model, 2, dtype=jnp.float32) / d_model
  angles = jnp.expand_dims(positions, -1).astype(jnp.float32) * jnp.expand_dims(
    10_000.0**-exponents, tuple(range(positions.ndim))
  )  # [..., d_model / 2]
  return jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=-1).reshape(*positions.shape, d_model)


def from_zero(tokens: jax.Array, positions: jax.Array | None) -> jax.Array:
  """`positions`, or where they are None those of one sentence: 0, 1, 2 and so on, `[length]`."""
  return jnp.arange(len(tokens)) if positions is None else positions


class PositionalEncoding(nn.Module):
  """`sinusoids`, or by option a learned table: positions `[...]` -> `[..., model]`."""

  config: ModelConfig

  def setup(self):
    if self.config.learned_positions:
      shape = (self.config.max_positions, self.config.d_model)
      self.table = self.param("table", nn.initializers.normal(self.config.d_model**-0.5), shape)

  def __call__(self, positions: jax.Array) -> jax.Array:
    if self.config.learned_positions:
      # Multiplied by sqrt(d_model), as a token's embedding is, so that both are equally large.
      return self.table[positions] * self.config.d_model**0.5
    return sinusoids(positions, self.config.d_model)
