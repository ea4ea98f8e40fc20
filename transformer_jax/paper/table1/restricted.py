"""Restricted self-attention (§4, Table 1) in O(r n d): blocks of r queries, and eq. 1 of each."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.model.attention import MultiHeadAttention, scaled_dot_product_attention
from transformer_jax.model.config import ModelConfig


def restricted_attention(query: jax.Array, key: jax.Array, value: jax.Array, radius: int) -> jax.Array:
  """Eq. 1 with |i - j| <= radius for query i and key j, as with `masking.window_mask`, but without the others.

  All keys that a block of r queries may see are in its own block of r keys and the
  two beside it, so that 3 r scores are computed for each query.

  Args:
    query: Q, `[n, heads, d_k]`.
    key: K, `[n, heads, d_k]`.
    value: V, `[n, heads, d_v]`.
    radius: r, at least 1.

  Returns:
    `[n, heads, d_v]`.
  """
  length = len(query)
  blocks = -(-length // radius)

  def in_blocks(x: jax.Array) -> jax.Array:
    padded = jnp.pad(x, ((0, blocks * radius - length), (0, 0), (0, 0)))
    return padded.reshape(blocks, radius, *x.shape[1:])

  def with_neighbours(x: jax.Array) -> jax.Array:
    nothing = jnp.zeros_like(x[:1])
    left, right = jnp.concatenate([nothing, x[:-1]]), jnp.concatenate([x[1:], nothing])
    return jnp.concatenate([left, x, right], axis=1)  # [blocks, 3 r, heads, d]

  query_place, key_place = jnp.arange(radius), jnp.arange(3 * radius) - radius  # from the first query of a block
  near = jnp.abs(query_place[:, None] - key_place[None, :]) <= radius  # [r, 3 r]
  position = jnp.arange(blocks)[:, None] * radius + key_place[None, :]
  exists = (position >= 0) & (position < length)  # [blocks, 3 r]
  mask = near[None] & exists[:, None]

  keys, values = (with_neighbours(in_blocks(x)) for x in (key, value))
  heads = jax.vmap(scaled_dot_product_attention)(in_blocks(query), keys, values, mask)  # [blocks, r, heads, d_v]
  return heads.reshape(blocks * radius, *heads.shape[2:])[:length]


class RestrictedAttention(nn.Module):
  """Multi-head self-attention (§3.2.2) within a radius: `[n, model]` -> `[n, model]`."""

  config: ModelConfig
  radius: int

  def setup(self):
    self.attention = MultiHeadAttention(self.config)

  def __call__(self, x: jax.Array) -> jax.Array:
    keys, values = self.attention.keys_values(x)
    return self.attention.output(restricted_attention(self.attention.query(x), keys, values, self.radius))
