"""The loss of the output layer in chunks of tokens, so that the logits of a whole batch never exist at once."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from transformer_jax.training.loss import token_sums
from transformer_jax.training.sums import Sums

CHUNK = 256  # tokens whose logits exist at a time

LogitsOf = Callable[[jax.Array, jax.Array], jax.Array]


def chunked_sums(
  logits_of: LogitsOf,
  table: jax.Array,
  hidden: jax.Array,
  targets: jax.Array,
  valid: jax.Array,
  label_smoothing: float,
  chunk: int = CHUNK,
) -> Sums:
  """`token_sums` of `logits_of(table, hidden)`, with the logits of only one chunk of tokens at a time.

  If a gradient is computed, each chunk's gradient follows its loss immediately.
  So no logits are computed twice, and a chunk needs three matmuls. Only `loss`
  has a gradient; the other sums have none.

  Args:
    logits_of: the output layer, (`[vocab, model]`, `[tokens, model]`) -> `[tokens, vocab]`.
    table: `[vocab, model]`.
    hidden: `[tokens, model]`.
    targets: `[tokens]`.
    valid: `[tokens]`.
    label_smoothing: eps.
    chunk: the tokens of a chunk.

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
  """The sums, and the gradients of `loss` with respect to the table and `hidden`, which `_backward` uses."""

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
  """The gradients from `_forward` times the cotangent of `loss`; `targets` and `valid` have no gradient."""
  for_table, for_hidden = gradients
  loss = cotangent.loss
  return for_table * loss.astype(for_table.dtype), for_hidden * loss.astype(for_hidden.dtype), None, None


_sums_of_chunks.defvjp(_forward, _backward)
