"""The loss of the output layer in chunks of tokens, so that the logits of a whole batch are never held."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from transformer_jax.training.loss import token_sums
from transformer_jax.training.sums import Sums

CHUNK = 256  # tokens whose logits are held at a time

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
  """The sums, and what `_backward` keeps: the gradients of `loss` for the table and for `hidden`."""

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
  """The kept gradients times that of `loss`; targets and `valid` have none."""
  for_table, for_hidden = gradients
  loss = cotangent.loss
  return for_table * loss.astype(for_table.dtype), for_hidden * loss.astype(for_hidden.dtype), None, None


_sums_of_chunks.defvjp(_forward, _backward)
