"""Positions and shifted inputs in a row that several sequences share."""

import jax
import jax.numpy as jnp

from transformer_jax.model.special_tokens import BOS


def segment_positions(segments: jax.Array) -> jax.Array:
  """Positions from 0 in each segment: `[length]` -> `[length]` int32."""
  index = jnp.arange(len(segments))
  first = jnp.concatenate([jnp.ones(1, bool), segments[1:] != segments[:-1]])
  return index - jax.lax.cummax(jnp.where(first, index, 0))


def decoder_input(target: jax.Array, positions: jax.Array) -> jax.Array:
  """The target shifted right behind BOS, in each segment: `[length]` -> `[length]`."""
  return jnp.where(positions == 0, BOS, jnp.roll(target, 1))
