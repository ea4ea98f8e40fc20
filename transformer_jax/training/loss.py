"""Label-smoothed cross entropy (§5.4)."""

import jax
import jax.numpy as jnp

from transformer_jax.training.sums import Sums


def token_sums(logits: jax.Array, targets: jax.Array, valid: jax.Array, label_smoothing: float) -> Sums:
  r"""The cross entropy with the targets q = (1 - eps) onehot(y) + eps / V, and the other sums.

    -sum_v q_v log p_v = logsumexp(z) - (1 - eps) z_y - (eps / V) sum_v z_v

  Args:
    logits: z, `[tokens, vocab]` float32.
    targets: y, `[tokens]` integers.
    valid: `[tokens]` booleans, false at padding.
    label_smoothing: eps.

  Returns:
    The sums over valid tokens.

  References:
    Szegedy et al. 2016, Rethinking the Inception Architecture.
  """
  normaliser = jax.nn.logsumexp(logits, axis=-1)
  of_target = jnp.take_along_axis(logits, targets[:, None], axis=-1)[:, 0]
  of_average = jnp.mean(logits, axis=-1)
  loss = normaliser - (1 - label_smoothing) * of_target - label_smoothing * of_average
  correct = of_target >= jnp.max(logits, axis=-1)

  def add_up(values: jax.Array) -> jax.Array:
    return jnp.sum(jnp.where(valid, values, 0).astype(jnp.float32))

  return Sums(add_up(loss), add_up(normaliser - of_target), add_up(correct), add_up(jnp.ones_like(loss)))
