"""The largest of many values, on processors that sort slowly."""

import jax
import jax.numpy as jnp


def top_k(values: jax.Array, k: int, block: int = 128) -> tuple[jax.Array, jax.Array]:
  """Computes `jax.lax.top_k` by way of the largest value of each block.

  The k largest values are in the k blocks with the largest maxima. So most
  values are only compared with their neighbours, many at a time. Of equal values
  the first wins, as in `jax.lax.top_k`.

  Args:
    values: `[n]`, n at least k; `jax.vmap` maps it over rows.
    k: how many values are wanted.
    block: how many values a block has.

  Returns:
    The values `[k]`, largest first, and their indices, int32.
  """
  n = len(values)
  if n <= 2 * k * block:
    best, places = jax.lax.top_k(values, k)
    return best, places
  whole = n - n % block
  # Neither this function nor its caller may slice what `lax.top_k` returns: XLA would merge the slice with its own and
  # sort everything.
  _, chosen = jax.lax.top_k(jnp.max(values[:whole].reshape(-1, block), axis=1), k)
  chosen = -jax.lax.top_k(-chosen, k)[0]  # ascending, so that the first of equal values wins
  places = chosen[:, None] * block + jnp.arange(block)[None]
  places = jnp.concatenate([places.reshape(-1), jnp.arange(whole, n)])
  best, found = jax.lax.top_k(values[places], k)
  return best, places[found]
