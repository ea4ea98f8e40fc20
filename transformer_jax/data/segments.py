"""Positions and shifted inputs in a packed row, which holds several sequences."""

import jax
import jax.numpy as jnp


def segment_positions(segments: jax.Array) -> jax.Array:
  """The position of each token in its segment, from 0: `[length]` -> `[length]` int32."""
  index = jnp.arange(len(segments))
  first = jnp.concatenate([jnp.ones(1, bool), segments[1:] != segments[:-1]])
  return index - jax.lax.cummax(jnp.where(first, index, 0))


def decoder_input(target: jax.Array, positions: jax.Array, start: int) -> jax.Array:
  """The target shifted right by one, with `start` first, in each segment: `[length]` -> `[length]`."""
  return jnp.where(positions == 0, start, jnp.roll(target, 1))
