"""Sums over the bits of arrays, by which a checkpoint is known to hold what was saved in it.

Its own files have such sums over their descriptions, but not over the numbers.
"""

from typing import Any

import jax
import jax.numpy as jnp


@jax.jit
def _weighted_sum(x: jax.Array) -> jax.Array:
  bits = jax.lax.bitcast_convert_type(x, jnp.uint32).ravel()
  return jnp.sum(bits * (2 * jnp.arange(bits.size, dtype=jnp.uint32) + 1), dtype=jnp.uint32)


def checksums(arrays: dict[str, Any]) -> dict[str, int]:
  """The sum over i of (2 i + 1) times the i-th number's bits, modulo 2^32, of each array.

  The weights are odd, so that every single bit counts; their order counts too.

  Args:
    arrays: of 32-bit numbers, by name.
  """
  return {name: int(found) for name, found in jax.device_get({k: _weighted_sum(x) for k, x in arrays.items()}).items()}
