"""The largest of many values, on processors that sort slowly."""

import jax
import jax.numpy as jnp


def top_k(values: jax.Array, k: int, block: int = 128) -> tuple[jax.Array, jax.Array]:
  """`jax.lax.top_k`, by way of the largest value of each block.

  The k largest values are in the k blocks with the largest maxima, so that most
  values are only compared with their neighbours, which a processor does many at
  a time. Of equal values the first wins, here as there.

  Args:
    values: `[rows, n]`, n at least k.
    k: how many.
    block: values of a block.

  Returns:
    The values `[rows, k]`, largest first, and their places, int32.
  """
  rows, n = values.shape
  if n <= 2 * k * block:
    best, places = jax.lax.top_k(values, k)
    return best, places
  whole = n - n % block
  blocks, rest = values[:, :whole].reshape(rows, -1, block), values[:, whole:]
  # No slices of what `top_k` gives, here or by the caller: XLA would merge them with its own and sort everything.
  _, chosen = jax.lax.top_k(jnp.max(blocks, axis=2), k)
  chosen = -jax.lax.top_k(-chosen, k)[0]  # in their order, for equal values
  places = chosen[:, :, None] * block + jnp.arange(block)[None, None]
  places = jnp.concatenate([places.reshape(rows, -1), jnp.broadcast_to(jnp.arange(whole, n), rest.shape)], axis=1)
  best, found = jax.lax.top_k(jnp.take_along_axis(values, places, axis=1), k)
  return best, jnp.take_along_axis(places, found, axis=1)
