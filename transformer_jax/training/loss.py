"""Label-smoothed cross entropy (§5.4), as sums and counts, never means.

Means are taken once, at the end, over the tokens of all devices, hosts and
micro-batches: a mean of means would weigh tokens by their neighbours.
"""

import functools
from collections.abc import Callable
from dataclasses import field

import flax.struct
import jax
import jax.numpy as jnp

CHUNK = 256  # tokens whose logits are held at a time

LogitsOf = Callable[[jax.Array, jax.Array], jax.Array]


@flax.struct.dataclass
class Sums:
  """Over real tokens; each a float32 scalar.

  Attributes:
    loss: smoothed cross entropy in nats; what is minimised.
    negative_log_likelihood: without smoothing; exp of its mean is the perplexity.
    correct: tokens to which the model gave the largest probability.
    tokens: how many there are.
    others: the sums of losses beside this one, by name; each becomes a mean over its own count.
  """

  loss: jax.Array
  negative_log_likelihood: jax.Array
  correct: jax.Array
  tokens: jax.Array
  others: dict[str, "Sums"] = field(default_factory=dict)


def joint_loss(sums: Sums, counts: dict[str, jax.Array]) -> jax.Array:
  """The sum to minimise: divided by the first loss' count it is the sum of all losses' means.

  Args:
    sums: of some rows.
    counts: of the whole batch: how many terms the first loss ("tokens") and each other has; empty without others.
  """
  return sum(
    (other.loss * (counts["tokens"] / jnp.maximum(counts[name], 1)) for name, other in sums.others.items()), sums.loss
  )


def token_sums(logits: jax.Array, targets: jax.Array, valid: jax.Array, label_smoothing: float) -> Sums:
  r"""Cross entropy against (1 - eps) onehot(y) + eps / V.

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


def chunked_sums(
  logits_of: LogitsOf,
  table: jax.Array,
  hidden: jax.Array,
  targets: jax.Array,
  valid: jax.Array,
  label_smoothing: float,
  chunk: int = CHUNK,
) -> Sums:
  """`token_sums` of `logits_of(table, hidden)` without ever holding the logits of more than one chunk of tokens.

  Where a gradient is asked for, each chunk's is taken as soon as its loss is
  known, so that no logits are computed twice: three matrix products a chunk.
  Only `loss` has a gradient; the other sums are for reading.

  Args:
    logits_of: the output layer, (`[vocab, model]`, `[tokens, model]`) -> `[tokens, vocab]`.
    table: `[vocab, model]`.
    hidden: `[tokens, model]`.
    targets: `[tokens]`.
    valid: `[tokens]`.
    label_smoothing: eps.
    chunk: tokens at a time.

  Returns:
    The sums over valid tokens.
  """
  missing = -len(targets) % chunk
  chunks = [
    jnp.pad(x, [(0, missing)] + [(0, 0)] * (x.ndim - 1)).reshape(-1, chunk, *x.shape[1:])
    for x in (hidden, targets, valid)
  ]
  return _sums_of_chunks(logits_of, label_smoothing, table, *chunks)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _sums_of_chunks(
  logits_of: LogitsOf, label_smoothing: float, table: jax.Array, hidden: jax.Array, targets: jax.Array, valid: jax.Array
) -> Sums:
  def of_chunk(inputs):
    hidden, targets, valid = inputs
    return token_sums(logits_of(table, hidden), targets, valid, label_smoothing)

  return jax.tree.map(jnp.sum, jax.lax.map(of_chunk, (hidden, targets, valid)))


def _forward(logits_of, label_smoothing, table, hidden, targets, valid):
  def of_chunk(table_gradient, inputs):
    hidden, targets, valid = inputs

    def loss(table, hidden):
      sums = token_sums(logits_of(table, hidden), targets, valid, label_smoothing)
      return sums.loss, sums

    (for_table, for_hidden), sums = jax.grad(loss, (0, 1), has_aux=True)(table, hidden)
    return table_gradient + for_table, (for_hidden, sums)

  gradient, (for_hidden, sums) = jax.lax.scan(of_chunk, jnp.zeros_like(table), (hidden, targets, valid))
  return jax.tree.map(jnp.sum, sums), (gradient, for_hidden)


def _backward(logits_of, label_smoothing, gradients, cotangent):
  for_table, for_hidden = gradients
  loss = cotangent.loss
  return for_table * loss.astype(for_table.dtype), for_hidden * loss.astype(for_hidden.dtype), None, None


_sums_of_chunks.defvjp(_forward, _backward)
