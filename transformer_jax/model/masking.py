"""Which query may look at which key (§3.2.3): boolean masks `[query, key]`, true where it may."""

import functools

import jax
import jax.numpy as jnp

from transformer_jax.model.special_tokens import BOS, PAD


def padding_mask(query_valid: jax.Array, key_valid: jax.Array) -> jax.Array:
  """Real tokens look at real tokens: `[query]`, `[key]` booleans -> `[query, key]`."""
  return query_valid[:, None] & key_valid[None, :]


def causal_mask(length: int) -> jax.Array:
  """Position i looks at positions j <= i: `[length, length]`.

  >>> print(causal_mask(3).astype(int))
  [[1 0 0]
   [1 1 0]
   [1 1 1]]
  """
  return jnp.tri(length, dtype=bool)


def segment_mask(query_segments: jax.Array, key_segments: jax.Array) -> jax.Array:
  """Tokens look at tokens of their own segment; segment 0 is padding and looks at nothing.

  Args:
    query_segments: `[query]` integers, the segment of each query.
    key_segments: `[key]` integers, the segment of each key.

  Returns:
    `[query, key]`.

  Example:
    >>> print(segment_mask(jnp.array([1, 2, 0]), jnp.array([1, 1, 2, 0])).astype(int))
    [[1 1 0 0]
     [0 0 1 0]
     [0 0 0 0]]
  """
  same = query_segments[:, None] == key_segments[None, :]
  return same & (query_segments[:, None] > 0)


def window_mask(query: int, key: int, radius: int) -> jax.Array:
  """Restricted self-attention (§4, Table 1): |i - j| <= radius: `[query, key]`."""
  return jnp.abs(jnp.arange(query)[:, None] - jnp.arange(key)[None, :]) <= radius


def ancestor_mask(ancestors: jax.Array, position: jax.Array | int, radius: int | None = None) -> jax.Array:
  """The past of each hypothesis in a cache that all hypotheses of a sentence share.

  Row t * beams + b of the cache belongs to the hypothesis that was in place b of
  the beam at time t. The cache is never reordered; the places that a hypothesis
  came through tell its rows.

  Args:
    ancestors: `[beams, length]`, the place at each time of each hypothesis.
    position: the present time; later times are not yet written.
    radius: the radius of `window_mask`; None is no limit.

  Returns:
    `[beams, length * beams]`.
  """
  beams, length = ancestors.shape
  own = ancestors[:, :, None] == jnp.arange(beams)[None, None, :]  # [beams, length, place]
  past = jnp.arange(length) <= position
  if radius is not None:
    past &= jnp.arange(length) >= position - radius
  return (own & past[None, :, None]).reshape(beams, length * beams)


def combine(*masks: jax.Array) -> jax.Array:
  """True where every mask is."""
  return functools.reduce(jnp.logical_and, masks)


def materialized(*masks: jax.Array) -> tuple[jax.Array, ...]:
  """The masks as arrays in memory.

  Without this XLA's compiler for GPUs takes seconds to weigh whether each softmax should compute its mask itself.
  """
  return jax.lax.optimization_barrier(masks)


def for_pair(
  source: jax.Array,
  target: jax.Array,
  source_mask: jax.Array | None = None,
  target_mask: jax.Array | None = None,
  cross_mask: jax.Array | None = None,
  start: int = BOS,
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """The three masks of a model that translates; those that are None are made for one sentence pair.

  Such a pair is padded with PAD, and a target position looks at no later one.

  Args:
    source: `[source]` tokens.
    target: `[target]` tokens.
    source_mask: `[source, source]`, or None.
    target_mask: `[target, target]`, or None.
    cross_mask: `[target, source]`, or None.
    start: the first token of the target, which is never padding, even if it is PAD.
  """
  target_valid = jnp.not_equal(target, PAD)
  if start == PAD:
    target_valid = target_valid.at[0].set(True)
  if source_mask is None:
    source_mask = padding_mask(source != PAD, source != PAD)
  if target_mask is None:
    target_mask = combine(causal_mask(len(target)), padding_mask(target_valid, target_valid))
  if cross_mask is None:
    cross_mask = padding_mask(target_valid, source != PAD)
  return source_mask, target_mask, cross_mask
