"""What decoding remembers of one sentence and its hypotheses, between one token and the next."""

from typing import NamedTuple

import flax.struct
import jax
import jax.numpy as jnp

from transformer_jax.model.config import ModelConfig

# Keys `[key, heads, d_k]` and values `[key, heads, d_v]`, as attention takes them.
KeysValues = tuple[jax.Array, jax.Array]
# The same in the order in which the products of a step read them: `[heads, d_k, key]` and `[heads, key, d_v]`.
Stored = tuple[jax.Array, jax.Array]


class Memory(NamedTuple):
  """What the decoder knows of the source.

  Attributes:
    keys_values: for each layer the cross-attention's, stored; computed once and shared by the beams.
    mask: `[1, source]`, true at real tokens.
  """

  keys_values: tuple[Stored, ...]
  mask: jax.Array


@flax.struct.dataclass
class Cache:
  """The decoder's keys and values.

  Hypotheses come and go, but what was computed for them stays where it was
  written: `ancestors` says which rows are a hypothesis' past
  (`masking.ancestor_mask`), so that only this small table is re-ordered.

  Attributes:
    past: for each layer the self-attention's keys and values, stored; key t * beams + s
      is what slot s computed at time t.
    memory: of the source; None for a decoder without one.
    ancestors: `[beams, length]` int32.
  """

  past: tuple[Stored, ...]
  memory: Memory | None
  ancestors: jax.Array


def empty(config: ModelConfig, memory: Memory | None, max_length: int, beams: int) -> Cache:
  """The cache before the first of at most `max_length` tokens of `beams` hypotheses."""
  keys = jnp.zeros((max_length * beams, config.num_heads, config.head_dim_k), config.dtype.value)
  values = jnp.zeros((max_length * beams, config.num_heads, config.head_dim_v), config.dtype.value)
  past = tuple(store((keys, values)) for _ in range(config.num_layers))
  return Cache(past, memory, ancestors=jnp.zeros((beams, max_length), jnp.int32))


def store(keys_values: KeysValues) -> Stored:
  """Puts the axes into the order of reading: to turn all keys in each step would cost more than its few queries do."""
  keys, values = keys_values
  return keys.transpose(1, 2, 0), values.transpose(1, 0, 2)


def stored(past: Stored) -> KeysValues:
  """The inverse of `store`; the compiler makes no copy of it."""
  keys, values = past
  return keys.transpose(2, 0, 1), values.transpose(1, 0, 2)


def append(past: Stored, position: jax.Array, new: KeysValues) -> Stored:
  """Writes the keys and values `[beams, heads, d]` of time `position` behind those of the times before."""
  beams = len(new[0])
  keys, values = (x.astype(old.dtype) for x, old in zip(store(new), past, strict=True))
  return (
    jax.lax.dynamic_update_slice_in_dim(past[0], keys, position * beams, axis=2),
    jax.lax.dynamic_update_slice_in_dim(past[1], values, position * beams, axis=1),
  )


def continue_ancestors(ancestors: jax.Array, position: jax.Array, parents: jax.Array) -> jax.Array:
  """Hypothesis b takes over the past of `parents[b]` and writes to slot b from now on: `[beams, length]`."""
  slots = jnp.arange(len(parents), dtype=ancestors.dtype)
  return jax.lax.dynamic_update_index_in_dim(ancestors[parents], slots, position, axis=1)
