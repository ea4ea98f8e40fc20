"""What decoding remembers of one sentence and its hypotheses, between one token and the next."""

import flax.struct
import jax
import jax.numpy as jnp

KeysValues = tuple[jax.Array, jax.Array]


@flax.struct.dataclass
class Cache:
  """The decoder's keys and values.

  Hypotheses come and go, but what was computed for them stays where it was
  written: `ancestors` says which rows are a hypothesis' past
  (`masking.ancestor_mask`), so that only this small table is re-ordered.

  Attributes:
    past: for each layer the self-attention's keys `[length, beams, heads, d_k]`
      and values `[length, beams, heads, d_v]`, row t written at time t.
    memory: for each layer the cross-attention's keys `[source, heads, d_k]`
      and values `[source, heads, d_v]`, computed once and shared by the beams.
    memory_mask: `[1, source]`, true at real tokens.
    ancestors: `[beams, length]` int32.
  """

  past: tuple[KeysValues, ...]
  memory: tuple[KeysValues, ...]
  memory_mask: jax.Array
  ancestors: jax.Array


def append(past: KeysValues, position: jax.Array, new: KeysValues) -> KeysValues:
  """Writes the keys and values `[beams, heads, d]` of this time into row `position`."""
  keys, values = (
    jax.lax.dynamic_update_index_in_dim(old, row.astype(old.dtype), position, axis=0)
    for old, row in zip(past, new, strict=True)
  )
  return keys, values


def flatten(past: KeysValues) -> KeysValues:
  """`[length, beams, heads, d]` -> `[length * beams, heads, d]`, the keys that `ancestor_mask` speaks of."""
  keys, values = (x.reshape(-1, *x.shape[2:]) for x in past)
  return keys, values


def continue_ancestors(ancestors: jax.Array, position: jax.Array, parents: jax.Array) -> jax.Array:
  """Hypothesis b takes over the past of `parents[b]` and writes to slot b from now on: `[beams, length]`."""
  slots = jnp.arange(len(parents), dtype=ancestors.dtype)
  return jax.lax.dynamic_update_index_in_dim(ancestors[parents], slots, position, axis=1)
