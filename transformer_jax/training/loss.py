"""Label-smoothed cross entropy (§5.4), and R-Drop."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from transformer_jax.training.sums import Sums


def token_sums(logits: jax.Array, targets: jax.Array, valid: jax.Array, label_smoothing: float) -> Sums:
  r"""The cross entropy with the targets q = (1 - eps) onehot(y) + eps / V, and the other sums.

    -sum_v q_v log p_v = logsumexp(z) - (1 - eps) z_y - (eps / V) sum_v z_v

  Its gradient with respect to z is p - q. An accelerator computes that in one pass over the logits. Automatic
  differentiation would need further passes, which add to the gradient at each target. Only `loss` has a gradient.

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
  return _token_sums(logits, targets, valid, label_smoothing)


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def _token_sums(logits: jax.Array, targets: jax.Array, valid: jax.Array, label_smoothing: float) -> Sums:
  return _forward(logits, targets, valid, label_smoothing)[0]


class _Kept(NamedTuple):
  """What the gradient needs: a CPU keeps the exponentials, and a GPU computes them again.

  Attributes:
    exponentials: exp(z - max z), `[tokens, vocab]`.
    total: their sums, `[tokens]`.
    targets: as in `token_sums`.
    valid: as in `token_sums`.
  """

  exponentials: jax.Array
  total: jax.Array
  targets: jax.Array
  valid: jax.Array


def _forward(logits: jax.Array, targets: jax.Array, valid: jax.Array, label_smoothing: float) -> tuple[Sums, _Kept]:
  largest = jnp.max(logits, axis=-1)
  exponentials = jnp.exp(logits - largest[:, None])
  total = jnp.sum(exponentials, axis=-1)
  logsumexp = largest + jnp.log(total)
  z_y = jnp.take_along_axis(logits, targets[:, None], axis=-1)[:, 0]
  mean_z = jnp.mean(logits, axis=-1)  # 1/V sum_v z_v
  loss = logsumexp - (1 - label_smoothing) * z_y - label_smoothing * mean_z
  correct = z_y >= largest

  def add_up(values: jax.Array) -> jax.Array:
    return jnp.sum(jnp.where(valid, values, 0).astype(jnp.float32))

  sums = Sums(add_up(loss), add_up(logsumexp - z_y), add_up(correct), add_up(jnp.ones_like(loss)))
  return sums, _Kept(exponentials, total, targets, valid)


def _backward(label_smoothing: float, kept: _Kept, cotangent: Sums) -> tuple[jax.Array, None, None]:
  """(p - q) times the cotangent of `loss`, for valid tokens; `targets` and `valid` have no gradient."""
  vocab = kept.exponentials.shape[-1]
  is_target = kept.targets[:, None] == jnp.arange(vocab)[None]
  q = jnp.where(is_target, 1 - label_smoothing, 0) + label_smoothing / vocab
  p = kept.exponentials * (1 / kept.total)[:, None]
  gradient = jnp.where(kept.valid[:, None], p - q, 0) * cotangent.loss
  return gradient.astype(kept.exponentials.dtype), None, None


_token_sums.defvjp(_forward, _backward)


def r_drop_sums(
  logits: tuple[jax.Array, jax.Array], targets: jax.Array, valid: jax.Array, label_smoothing: float, alpha: float
) -> Sums:
  """The cross entropy of two passes with other dropout, and the divergence of their distributions p and q.

    1/2 (CE(p) + CE(q)) + alpha/4 (KL(p || q) + KL(q || p))

    KL(p || q) + KL(q || p) = sum_v (p_v - q_v) (log p_v - log q_v)

  This is half of the loss of R-Drop (Liang et al. 2021, eq. 4), so that without `alpha` it is that of one pass.

  Args:
    logits: those of p and those of q, each `[tokens, vocab]` float32.
    targets: as in `token_sums`.
    valid: as in `token_sums`.
    label_smoothing: as in `token_sums`.
    alpha: the weight.

  Returns:
    The sums over valid tokens; those without `alpha` are means of the two passes. Only `loss` has a gradient.
  """
  of_each = [token_sums(one, targets, valid, label_smoothing) for one in logits]
  mean = jax.tree.map(lambda *values: sum(values) / 2, *of_each)
  log_p, log_q = (jax.nn.log_softmax(one) for one in logits)
  divergences = jnp.sum((jnp.exp(log_p) - jnp.exp(log_q)) * (log_p - log_q), axis=-1)
  return mean.replace(loss=mean.loss + alpha / 4 * jnp.sum(jnp.where(valid, divergences, 0)))
