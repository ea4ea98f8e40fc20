"""The loss of the output layer in chunks of tokens, so that the logits of a whole batch never exist at once."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from transformer_jax.runtime import devices
from transformer_jax.runtime.values import PyTree
from transformer_jax.training.loss import token_sums
from transformer_jax.training.sums import Sums

# The most tokens of a chunk. A CPU is fastest if the logits fit into its cache. An accelerator would be idle with so
# few tokens, and it reads and writes the gradient of the whole table for each chunk.
ON_CPU, ON_ACCELERATORS = 256, 8192

LogitsOf = Callable[[PyTree, jax.Array], PyTree]
SumsOf = Callable[[PyTree, jax.Array, jax.Array, float], Sums]


def chunked_sums(
  logits_of: LogitsOf,
  weights: PyTree,
  hidden: jax.Array,
  targets: jax.Array,
  valid: jax.Array,
  label_smoothing: float,
  chunk: int | None = None,
  sums_of: SumsOf = token_sums,
) -> Sums:
  """`token_sums` of `logits_of(weights, hidden)`, with the logits of only one chunk of tokens at a time.

  If a gradient is computed, each chunk's gradient follows its loss immediately.
  So no logits are computed twice, and a chunk needs three matmuls. Only `loss`
  has a gradient; the other sums have none.

  Args:
    logits_of: the output layer, (weights, `[tokens, model]`) -> `[tokens, vocab]`, or what else `sums_of` takes.
    weights: those of the output layer, such as the table `[vocab, model]`.
    hidden: `[tokens, model]`, or what else `logits_of` takes.
    targets: `[tokens]`.
    valid: `[tokens]`.
    label_smoothing: eps.
    chunk: the tokens of a chunk; None means `chunk_size`.
    sums_of: the loss of a chunk, with the arguments of `token_sums`.

  Returns:
    The sums over valid tokens.
  """
  chunk = chunk or chunk_size(len(targets))
  missing = -len(targets) % chunk
  chunks = [
    jnp.pad(x, [(0, missing)] + [(0, 0)] * (x.ndim - 1)).reshape(-1, chunk, *x.shape[1:])
    for x in (hidden, targets, valid)
  ]

  def of_chunk(weights: PyTree, hidden: jax.Array, targets: jax.Array, valid: jax.Array) -> Sums:
    return sums_of(logits_of(weights, hidden), targets, valid, label_smoothing)

  return _sums_of_chunks(of_chunk, weights, *chunks)


def chunk_size(tokens: int) -> int:
  """The tokens of a chunk on the devices here, so that all chunks of a batch have equally many."""
  chunks = -(-tokens // largest_chunk())
  return -(-tokens // chunks) if tokens else 1


def largest_chunk() -> int:
  """The most tokens of a chunk on the devices here."""
  return ON_CPU if devices.on_cpu() else ON_ACCELERATORS


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _sums_of_chunks(
  sums_of: Callable[..., Sums], weights: PyTree, hidden: jax.Array, targets: jax.Array, valid: jax.Array
) -> Sums:
  def of_chunk(inputs):
    return sums_of(weights, *inputs)

  return jax.tree.map(jnp.sum, jax.lax.map(of_chunk, (hidden, targets, valid)))


def _forward(sums_of, weights, hidden, targets, valid):
  """The sums, and the gradients of `loss` with respect to the weights and `hidden`, which `_backward` uses."""

  def of_chunk(gradient, inputs):
    hidden, targets, valid = inputs

    def loss(weights, hidden):
      sums = sums_of(weights, hidden, targets, valid)
      return sums.loss, sums

    (for_weights, for_hidden), sums = jax.grad(loss, (0, 1), has_aux=True)(weights, hidden)
    return jax.tree.map(jnp.add, gradient, for_weights), (for_hidden, sums)

  zeros = jax.tree.map(jnp.zeros_like, weights)
  gradient, (for_hidden, sums) = jax.lax.scan(of_chunk, zeros, (hidden, targets, valid))
  return jax.tree.map(jnp.sum, sums), (gradient, for_hidden)


def _backward(sums_of, gradients, cotangent):
  """The gradients from `_forward` times the cotangent of `loss`; `targets` and `valid` have no gradient."""
  loss = cotangent.loss
  for_weights, for_hidden = jax.tree.map(lambda gradient: gradient * loss.astype(gradient.dtype), gradients)
  return for_weights, for_hidden, None, None


_sums_of_chunks.defvjp(_forward, _backward)
