"""The decoding cache of one sentence: keys and values that a step needs and earlier steps computed."""

from typing import NamedTuple

import flax.struct
import jax
import jax.numpy as jnp

from transformer_jax.model.config import ModelConfig

# Keys `[key, heads, d_k]` and values `[key, heads, d_v]`, as attention takes them.
KeysValues = tuple[jax.Array, jax.Array]
# The same in the order in which the matmuls of a step read them: `[heads, d_k, key]` and `[heads, key, d_v]`.
Stored = tuple[jax.Array, jax.Array]


class Memory(NamedTuple):
  """The decoder's view of the source.

  Attributes:
    keys_values: each layer's cross-attention keys and values, computed once and shared by the beams.
    mask: `[1, source]`, true at real tokens.
  """

  keys_values: tuple[Stored, ...]
  mask: jax.Array


@flax.struct.dataclass
class Cache:
  """The decoder's keys and values.

  Keys and values stay where they were written when hypotheses are reordered. The
  small table `ancestors` tells which of them belong to the past of a hypothesis
  (`masking.ancestor_mask`), and only this table is reordered.

  Attributes:
    past: each layer's self-attention keys and values. Key t * beams + b belongs to the hypothesis that was in place b
      of the beam at time t.
    memory: the view of the source; None for a decoder without one.
    ancestors: `[beams, length]` int32, the place in the beam at each time of each hypothesis.
  """

  past: tuple[Stored, ...]
  memory: Memory | None
  ancestors: jax.Array


def empty(config: ModelConfig, memory: Memory | None, max_length: int, beams: int) -> Cache:
  """The cache before the first of at most `max_length` tokens of `beams` hypotheses."""
  keys = jnp.zeros((max_length * beams, config.num_heads, config.head_dim_k), config.dtype.value)
  values = jnp.zeros((max_length * beams, config.num_heads, config.head_dim_v), config.dtype.value)
  past = tuple(store((keys, values)) for _ in range(config.decoder_depth))
  return Cache(past, memory, ancestors=jnp.zeros((beams, max_length), jnp.int32))


def store(keys_values: KeysValues) -> Stored:
  """Transposes keys and values into the order of reading; to transpose all of them in each step would be slow."""
  keys, values = keys_values
  return keys.transpose(1, 2, 0), values.transpose(1, 0, 2)


def load(past: Stored) -> KeysValues:
  """The inverse of `store`; it makes no copy in a compiled function."""
  keys, values = past
  return keys.transpose(2, 0, 1), values.transpose(1, 0, 2)


def append(past: Stored, position: jax.Array, new: KeysValues) -> Stored:
  """Writes the keys and values `[beams, heads, d]` of time `position`."""
  beams = len(new[0])
  keys, values = (x.astype(old.dtype) for x, old in zip(store(new), past, strict=True))
  return (
    jax.lax.dynamic_update_slice_in_dim(past[0], keys, position * beams, axis=2),
    jax.lax.dynamic_update_slice_in_dim(past[1], values, position * beams, axis=1),
  )


def continue_ancestors(ancestors: jax.Array, position: jax.Array, parents: jax.Array) -> jax.Array:
  """Hypothesis b inherits the past of `parents[b]`, and is in place b now: `[beams, length]`."""
  places = jnp.arange(len(parents), dtype=ancestors.dtype)
  return jax.lax.dynamic_update_index_in_dim(ancestors[parents], places, position, axis=1)
