"""Eq. 1 in blocks of queries, for long rows on a CPU.

The weights of one block fit into the processor's cache. They are not kept for the backward pass, which computes them
again. In a packed row the queries of a block may look at few keys: those of their own sentences. So each block reads
the smallest of a few windows of keys that has all of them. The result is that of eq. 1 for any mask; the windows only
leave out what the mask forbids.
"""

import functools
from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax.custom_batching import sequential_vmap

from transformer_jax.ops.masked_softmax import masked_softmax
from transformer_jax.runtime import devices
from transformer_jax.runtime.process import cores

Result = TypeVar("Result")

BLOCK = 64  # queries
# Where blocks were measured to be faster. They use little more than one core, as their matmuls are small.
_SHORTEST = 512
_MOST_CORES = 4


def suits(queries: int, keys: int) -> bool:
  """Whether blocks are faster than the plain formula, and possible."""
  fast = devices.on_cpu() and cores() <= _MOST_CORES and min(queries, keys) >= _SHORTEST
  return fast and queries % BLOCK == 0


@jax.custom_vjp
def blocked_attention(query: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array) -> jax.Array:
  """softmax(Q K^T / sqrt(d_k)) V for every head, computed in float32.

  Under `jax.vmap` one sequence is computed after another, so that each has windows of its own.

  Args:
    query: Q, `[query, heads, d_k]`; the number of queries is a multiple of `BLOCK`.
    key: K, `[key, heads, d_k]`.
    value: V, `[key, heads, d_v]`.
    mask: `[query, key]` booleans, true where the query may look.

  Returns:
    `[query, heads, d_v]` in the type of `value`; 0 where the query may look at nothing.

  References:
    Dao 2023, FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning; it skips blocks that
    are masked, too.
  """
  return _forward(query, key, value, mask)


@sequential_vmap
def _forward(query: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array) -> jax.Array:
  queries, keys, values = _by_head(query), _by_head(key), _by_head(value)

  def of_block(start: jax.Array) -> jax.Array:
    block, allowed = _part(queries, start, BLOCK), jax.lax.dynamic_slice_in_dim(mask, start, BLOCK)

    def of_window(first: jax.Array, size: int) -> jax.Array:
      weights = _weights(block, _part(keys, first, size), _part(allowed, first, size))
      return jnp.einsum("hqk,hkd->qhd", weights, _part(values, first, size))

    return _in_window(allowed, of_window)

  blocks = jax.lax.map(of_block, jnp.arange(0, len(query), BLOCK))
  return blocks.reshape(*query.shape[:2], value.shape[-1]).astype(value.dtype)


@sequential_vmap
def _backward(
  query: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array, d_output: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """The gradients dQ, dK and dV with respect to Q, K and V, from that of the output."""
  queries, keys, values, d_outputs = map(_by_head, (query, key, value, d_output))
  scale = query.shape[-1] ** -0.5

  def of_block(sums: tuple[jax.Array, jax.Array], start: jax.Array) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
    block, allowed = _part(queries, start, BLOCK), jax.lax.dynamic_slice_in_dim(mask, start, BLOCK)
    d_block = _part(d_outputs, start, BLOCK)

    def of_window(first: jax.Array, size: int) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
      key_window, value_window = _part(keys, first, size), _part(values, first, size)
      weights = _weights(block, key_window, _part(allowed, first, size))
      d_weights = jnp.einsum("hqd,hkd->hqk", d_block, value_window)
      d_scores = weights * (d_weights - jnp.sum(weights * d_weights, axis=-1, keepdims=True)) * scale
      d_keys = _plus(sums[0], first, jnp.einsum("hqk,hqd->hkd", d_scores, block))
      d_values = _plus(sums[1], first, jnp.einsum("hqk,hqd->hkd", weights, d_block))
      return (d_keys, d_values), jnp.einsum("hqk,hkd->qhd", d_scores, key_window)

    return _in_window(allowed, of_window)

  zeros = jnp.zeros_like(keys), jnp.zeros_like(values)
  (d_keys, d_values), d_queries = jax.lax.scan(of_block, zeros, jnp.arange(0, len(query), BLOCK))
  return (
    d_queries.reshape(query.shape).astype(query.dtype),
    d_keys.swapaxes(0, 1).astype(key.dtype),
    d_values.swapaxes(0, 1).astype(value.dtype),
  )


def _in_window(allowed: jax.Array, function: Callable[[jax.Array, int], Result]) -> Result:
  """`function(first, size)` of the smallest window with all keys that the mask `[queries, keys]` allows."""
  seen = allowed.any(axis=0)
  keys = len(seen)
  first, behind = jnp.argmax(seen), keys - jnp.argmax(seen[::-1])
  needed = jnp.where(seen.any(), behind - first, 0)
  sizes = [*_sizes(keys), keys]
  branches = [functools.partial(lambda size: function(jnp.minimum(first, keys - size), size), size) for size in sizes]
  return jax.lax.switch(sum((needed > size).astype(int) for size in sizes[:-1]), branches)


def _sizes(keys: int) -> list[int]:
  """The sizes of the windows that are smaller than all keys: one and a half blocks, and twice as many each time."""
  sizes = []
  size = BLOCK * 3 // 2
  while size < keys:
    sizes.append(size)
    size *= 2
  return sizes


def _weights(query: jax.Array, key: jax.Array, mask: jax.Array) -> jax.Array:
  """softmax(Q K^T / sqrt(d_k)), `[heads, query, key]`, of queries `[heads, query, d_k]` and keys."""
  scores = jnp.einsum("hqd,hkd->hqk", query, key) * query.shape[-1] ** -0.5
  return masked_softmax(scores, mask[None])


def _by_head(x: jax.Array) -> jax.Array:
  """`[n, heads, d]` -> `[heads, n, d]` in float32, as XLA's small matmuls on CPUs are in any case."""
  return x.swapaxes(0, 1).astype(jnp.float32)


def _part(x: jax.Array, first: jax.Array, size: int) -> jax.Array:
  """A part of the second axis."""
  return jax.lax.dynamic_slice_in_dim(x, first, size, axis=1)


def _plus(x: jax.Array, first: jax.Array, part: jax.Array) -> jax.Array:
  """x, with an array added to a part of its second axis."""
  return jax.lax.dynamic_update_slice_in_dim(x, _part(x, first, part.shape[1]) + part, first, axis=1)


def _keep(query: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array) -> tuple[jax.Array, tuple]:
  return _forward(query, key, value, mask), (query, key, value, mask)


def _gradients(kept: tuple, d_output: jax.Array) -> tuple:
  return *_backward(*kept, d_output), None


blocked_attention.defvjp(_keep, _gradients)
