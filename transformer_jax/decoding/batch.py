"""What a device computes for a batch of sentences: the search for translations, and the probability of given ones."""

import dataclasses
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.extend.core import jaxpr_as_fun

from transformer_jax.analysis import operations
from transformer_jax.config import LengthPenalty
from transformer_jax.data.tokenizer import BOS, PAD
from transformer_jax.decoding.beam_search import Hypotheses, beam_search
from transformer_jax.model import masking
from transformer_jax.runtime import devices
from transformer_jax.runtime.errors import InputError

Params = Any

# Of the largest array, such as all scores of an attention, there are so many at a time: operands, results, copies.
_COPIES = 3


@dataclasses.dataclass(frozen=True)
class SearchOptions:
  """How to search; each is compiled by itself.

  Attributes:
    beam_size, length_penalty, alpha, n_best, patience: as in `beam_search`.
    extra_length: an output has at most the input's tokens and this many.
    room: an output that needs more places than the row's length and this many is given up; None is `extra_length`,
      with which none is.
  """

  beam_size: int
  length_penalty: LengthPenalty
  alpha: float
  n_best: int
  extra_length: int
  patience: float = 0.0
  room: int | None = None


def search(model: nn.Module, options: SearchOptions, slots: int, params: Params, source: jax.Array) -> Hypotheses:
  """The best translations of `source`.

  Raises:
    InputError: memory cannot hold what the search keeps of the sentences.

  Args:
    model: one that translates (`families`).
    options: of the search.
    slots: sentences that are decoded side by side; divides the number of sentences.
    params: the model's parameters.
    source: `[sentences, length]` with EOS; rows of padding have no translation and come last.
  """
  variables = {"params": params}
  lengths = jnp.sum(source != PAD, axis=1, dtype=jnp.int32)
  limits = jnp.where(lengths > 0, lengths + options.extra_length, 0)
  max_length = source.shape[1] + (options.extra_length if options.room is None else options.room)
  memories, encoding = _memories(model, variables, slots, source)

  def init_cache(memory: Any) -> Any:
    return model.apply(variables, memory, max_length, options.beam_size, method="init_cache")

  def enter(cache: Any, slot: jax.Array, sentence: jax.Array) -> Any:
    def put(old: jax.Array, every: jax.Array) -> jax.Array:
      return jax.lax.dynamic_update_index_in_dim(old, every[sentence], slot, 0)

    return dataclasses.replace(cache, memory=jax.tree.map(put, cache.memory, memories))

  def decode_step(cache: Any, position: jax.Array, parents: jax.Array, tokens: jax.Array) -> Any:
    return model.apply(variables, cache, position, parents, tokens, method="decode_step")

  def step(cache: Any, positions: jax.Array, parents: jax.Array, tokens: jax.Array) -> tuple[jax.Array, Any]:
    hidden, cache = jax.vmap(decode_step)(cache, positions, parents, tokens)
    return _log_probs(model, variables, hidden), cache  # [slots, beams, vocab]

  # Of this cache nothing is read before a sentence enters.
  cache = jax.vmap(init_cache)(jax.tree.map(lambda x: x[:slots], memories))
  beams = jnp.zeros((slots, options.beam_size), jnp.int32)
  traced_step, decoding = _traced(step, cache, beams[:, 0], beams, beams)
  _require_memory(
    _bytes((cache, memories)) + _COPIES * max(encoding, decoding),
    f"{slots} sentences of {source.shape[1]} tokens with {options.beam_size} hypotheses each",
  )
  return beam_search(
    traced_step,
    enter,
    cache,
    limits,
    slots=slots,
    beam_size=options.beam_size,
    max_length=max_length,
    length_penalty=options.length_penalty,
    alpha=options.alpha,
    n_best=options.n_best,
    patience=options.patience,
  )


def _require_memory(size: int, what: str) -> None:
  """Raises InputError, when the search is compiled, if as many as there are at a time need more than there is."""
  size, memory = devices.at_a_time() * size, devices.memory()
  if memory is not None and size > memory:
    raise InputError(
      f"to search for the translations of {what} takes {size / 1e9:,.1f} GB, but there are {memory / 1e9:,.1f}: "
      "lower the beam size, the batch size, config.decode.extra_length or config.decode.max_source_length"
    )


def _traced(function: Callable[..., Any], *arguments: Any) -> tuple[Callable[..., Any], int]:
  """A function of arrays like these arguments that need not be traced again, and the bytes of its largest array."""
  jaxpr, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
  again = jaxpr_as_fun(jaxpr)
  structure = jax.tree.structure(shapes)
  return lambda *args: jax.tree.unflatten(structure, again(*jax.tree.leaves(args))), operations.largest(jaxpr.jaxpr)


def _bytes(tree: Any) -> int:
  return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))


def _memories(model: nn.Module, variables: Any, slots: int, source: jax.Array) -> tuple[Any, int]:
  """What the decoder needs of each sentence, `slots` of them at a time, and the bytes of the largest array on the way.

  Groups of padding cost nothing.
  """

  def precompute_cross_attention(source: jax.Array) -> Any:
    return model.apply(variables, _encode(model, variables, source), source != PAD, method="precompute_cross_attention")

  groups = source.reshape(-1, slots, source.shape[1])
  remember_all, largest = _traced(jax.vmap(precompute_cross_attention), groups[0])

  def of_group(group: jax.Array) -> Any:
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(remember_all, group))
    return jax.lax.cond(jnp.any(group != PAD), remember_all, lambda _: nothing, group)

  return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), jax.lax.map(of_group, groups)), largest


def score(model: nn.Module, params: Params, pairs: tuple[jax.Array, jax.Array]) -> jax.Array:
  """log P(target | source) of each pair.

  Args:
    model: one that translates (`families`).
    params: its parameters.
    pairs: sources and targets, each `[sentences, length]` with EOS.

  Returns:
    `[sentences]` float32; 0 for a row of padding.
  """
  variables = {"params": params}

  def decode(source: jax.Array, target: jax.Array) -> jax.Array:
    memory = _encode(model, variables, source)
    length = len(target)
    shifted = jnp.roll(target, 1).at[0].set(BOS)
    cross_mask = masking.padding_mask(target != PAD, source != PAD)
    hidden = model.apply(
      variables, shifted, jnp.arange(length), memory, masking.causal_mask(length), cross_mask, method="decode"
    )
    return jnp.asarray(hidden)

  def log_prob(pair: tuple[jax.Array, jax.Array]) -> jax.Array:
    hidden, target = pair
    log_probs = _log_probs(model, variables, hidden)  # [target, vocab]
    chosen = jnp.take_along_axis(log_probs, target[:, None], axis=1)[:, 0]
    return jnp.sum(jnp.where(target == PAD, 0, chosen))

  # One sentence after another: probabilities of every token at every place are large.
  return jax.lax.map(log_prob, (jax.vmap(decode)(*pairs), pairs[1]))


def _encode(model: nn.Module, variables: Any, source: jax.Array) -> Any:
  """One sentence `[length]` -> memory `[length, model]`."""
  valid = source != PAD
  return model.apply(variables, source, jnp.arange(len(source)), masking.padding_mask(valid, valid), method="encode")


def _log_probs(model: nn.Module, variables: Any, hidden: jax.Array) -> jax.Array:
  logits: Any = model.apply(variables, hidden, method="logits")
  return jax.nn.log_softmax(logits)
