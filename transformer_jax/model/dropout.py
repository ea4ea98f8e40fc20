"""Dropout (§5.4), with 16 random bits for each element."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.extend.random import threefry_2x32

_LEVELS = 1 << 16


def dropout(key: jax.Array, x: jax.Array, rate: float) -> jax.Array:
  """Zeroes each element of `x` with probability `rate` and scales the others to keep the mean.

  The rate is rounded to a multiple of 2 ** -16, and the scale is that of the
  rounded rate, so that the expectation of the result is exactly `x`.

  Args:
    key: the key of the random bits, for the generator Threefry.
    x: an array of any shape and floating type.
    rate: the probability of zero, at least 0 and below 1.

  Returns:
    An array like `x`.

  References:
    Srivastava et al. 2014, Dropout: A Simple Way to Prevent Neural Networks
    from Overfitting.
  """
  zeroed = min(round(rate * _LEVELS), _LEVELS - 1)
  keep = _at_least(zeroed, key, x.size).reshape(x.shape)
  factor = _LEVELS / (_LEVELS - zeroed)  # which bfloat16 would round
  scaled = x.astype(jnp.promote_types(x.dtype, jnp.float32)) * factor
  return jnp.where(keep, scaled, 0).astype(x.dtype)


def _at_least(level: int, key: jax.Array, count: int) -> jax.Array:
  """`[count]` booleans: whether a random integer, uniform below `_LEVELS`, is at least `level`.

  Random bits take a large part of a training step on a CPU. 16 bits cost half as
  much as the usual 32, and `jax.random.bits` would waste one of the two words
  that Threefry computes at a time. The two halves of a word go to distant places
  of the result, because interleaving them would take time.
  """
  words = threefry_2x32(jax.random.key_data(key), jnp.arange(-(-count // 2), dtype=jnp.uint32))
  return jnp.concatenate([words % _LEVELS >= level, words // _LEVELS >= level])[:count]


class Dropout(nn.Module):
  """`dropout` with a key from the module's "dropout" stream."""

  rate: float

  def __call__(self, x: jax.Array, *, deterministic: bool) -> jax.Array:
    if deterministic or self.rate == 0:
      return x
    return dropout(self.make_rng("dropout"), x, self.rate)
