"""Label-smoothed cross entropy (§5.4), and R-Drop."""

import functools

import jax
import jax.numpy as jnp

from transformer_jax.training.sums import Sums


def token_sums(logits: jax.Array, targets: jax.Array, valid: jax.Array, label_smoothing: float) -> Sums:
  r"""The cross entropy with the targets q = (1 - eps) onehot(y) + eps / V, and the other sums.

    -sum_v q_v log p_v = logsumexp(z) - (1 - eps) z_y - (eps / V) sum_v z_v

  Its gradient with respect to z is p - q. An accelerator computes that in one pass over the logits. Without the formula
  it would add to the gradient at each target, in passes of their own. Only `loss` has a gradient.

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


def _forward(
  logits: jax.Array, targets: jax.Array, valid: jax.Array, label_smoothing: float
) -> tuple[Sums, tuple[jax.Array, jax.Array, jax.Array, jax.Array]]:
  """The sums, and what the gradient needs: a CPU keeps the exponentials, and a GPU computes them again."""
  largest = jnp.max(logits, axis=-1)
  exponentials = jnp.exp(logits - largest[:, None])
  total = jnp.sum(exponentials, axis=-1)
  normaliser = largest + jnp.log(total)
  of_target = jnp.take_along_axis(logits, targets[:, None], axis=-1)[:, 0]
  of_average = jnp.mean(logits, axis=-1)
  loss = normaliser - (1 - label_smoothing) * of_target - label_smoothing * of_average
  correct = of_target >= largest

  def add_up(values: jax.Array) -> jax.Array:
    return jnp.sum(jnp.where(valid, values, 0).astype(jnp.float32))

  sums = Sums(add_up(loss), add_up(normaliser - of_target), add_up(correct), add_up(jnp.ones_like(loss)))
  return sums, (exponentials, total, targets, valid)


def _backward(
  label_smoothing: float, kept: tuple[jax.Array, jax.Array, jax.Array, jax.Array], cotangent: Sums
) -> tuple[jax.Array, None, None]:
  """(p - q) times the cotangent of `loss`, for valid tokens; `targets` and `valid` have no gradient."""
  exponentials, total, targets, valid = kept
  vocab = exponentials.shape[-1]
  p = exponentials * (1 / total)[:, None]
  q = jnp.where(targets[:, None] == jnp.arange(vocab)[None], 1 - label_smoothing, 0) + label_smoothing / vocab
  return (jnp.where(valid[:, None], p - q, 0) * cotangent.loss).astype(exponentials.dtype), None, None


_token_sums.defvjp(_forward, _backward)


def r_drop_sums(logits: jax.Array, targets: jax.Array, valid: jax.Array, label_smoothing: float, alpha: float) -> Sums:
  r"""The cross entropy of two passes with other dropout, and the divergence of their distributions p and q.

    1/2 (CE(p) + CE(q)) + alpha/4 (KL(p || q) + KL(q || p))

  This is half of the loss of Wu et al. 2021, R-Drop, eq. 4, so that without `alpha` it is that of one pass.

  Args:
    logits: of both passes, `[tokens, 2, vocab]` float32.
    targets: as in `token_sums`.
    valid: as in `token_sums`.
    label_smoothing: as in `token_sums`.
    alpha: the weight.

  Returns:
    The sums over valid tokens; those without `alpha` are means of the two passes.
  """
  of_both = token_sums(
    logits.reshape(-1, logits.shape[-1]), jnp.repeat(targets, 2), jnp.repeat(valid, 2), label_smoothing
  )
  mean = jax.tree.map(lambda value: value / 2, of_both)
  p, q = (jax.nn.log_softmax(logits[:, i], axis=-1) for i in range(2))
  divergence = jnp.sum((jnp.exp(p) - jnp.exp(q)) * (p - q), axis=-1)
  return mean.replace(loss=mean.loss + alpha / 4 * jnp.sum(jnp.where(valid, divergence, 0)))
