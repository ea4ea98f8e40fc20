"""The softmax over what a mask allows, for every kind of attention."""

import jax
import jax.numpy as jnp


def masked_softmax(scores: jax.Array, mask: jax.Array) -> jax.Array:
  """softmax over the last axis, of the scores that the mask allows.

  Args:
    scores: `[..., key]` float32.
    mask: booleans of as many axes, each as long as that of the scores or 1.

  Returns:
    float32 of the scores' shape; a row sums to 1, or is 0 where the mask allows nothing. What the mask forbids is 0.
  """
  found = jax.nn.softmax(jnp.where(mask, scores, jnp.finfo(jnp.float32).min))
  return jnp.where(mask, found, 0)
