"""Sampling from a categorical distribution over the vocabulary, by one random number."""

import jax
import jax.numpy as jnp

_BLOCK = 128  # tokens


def categorical(logits: jax.Array, uniform: jax.Array) -> jax.Array:
  """Samples a token with the probabilities softmax(logits), by inverse transform sampling with one random number.

  With F_i = P(token <= i) and U uniform in [0, 1), the token is the first i with U < F_i. Blocks of tokens are
  compared with U before the tokens of one block are. So this is much quicker than `jax.random.categorical`, which takes
  a random number for each token of the vocabulary.

  Args:
    logits: `[vocab]` float32; -inf for a token that is never drawn. One must be finite.
    uniform: U, a float32 scalar.

  Returns:
    The token, int32.
  """
  blocks = -(-len(logits) // _BLOCK)
  weights = jnp.exp(logits - jnp.max(logits))
  weights = jnp.pad(weights, (0, blocks * _BLOCK - len(logits))).reshape(blocks, _BLOCK)
  ends = jnp.cumsum(jnp.sum(weights, axis=1))
  # With rounding, the point may be in a block, or at a place of a block, that nothing may be drawn from. The
  # index then is the last one with a weight.
  point = uniform * ends[-1]
  block = _first_above(ends, point, jnp.any(weights > 0, axis=1))
  inside = jnp.cumsum(weights[block])
  return block * _BLOCK + _first_above(inside, point - (ends[block] - inside[-1]), weights[block] > 0)


def _first_above(sums: jax.Array, point: jax.Array, allowed: jax.Array) -> jax.Array:
  """The first index with a sum above `point`, of those allowed; the last one allowed if there is none."""
  index = jnp.arange(len(sums), dtype=jnp.int32)
  above = jnp.min(jnp.where((sums > point) & allowed, index, len(sums)))
  return jnp.minimum(above, jnp.max(jnp.where(allowed, index, 0)))
