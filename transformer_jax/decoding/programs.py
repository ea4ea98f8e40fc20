"""The programs for one batch of sentences: the search for translations, and the probability of given translations."""

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from transformer_jax.data.segments import decoder_input
from transformer_jax.decoding import continuous_batching
from transformer_jax.decoding.beam_search import Hypotheses, SearchOptions, Step, beam_search, log_softmax_without
from transformer_jax.decoding.choices import Choices, restriction
from transformer_jax.model import masking
from transformer_jax.model.params import Params
from transformer_jax.model.special_tokens import PAD
from transformer_jax.runtime import devices
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.sizes import gigabytes
from transformer_jax.runtime.values import PyTree

if TYPE_CHECKING:  # Flax takes a fifth of a second to import, and only tracing needs it
  import flax.linen as nn

# Arrays as large as the largest one, such as the scores of an attention, that exist at the same time: operands, results
# and copies.
_COPIES = 3


def search(
  model: "nn.Module",
  options: SearchOptions,
  params: Params,
  source: jax.Array,
  choices: Choices = Choices(),  # noqa: B008  a tuple
  *,
  slots: int,
  extra_length: int,
  headroom: int | None = None,
) -> Hypotheses:
  """Finds the best translations of `source`.

  Args:
    model: an encoder-decoder of the registry.
    options: the options of the search.
    params: the model's parameters.
    source: `[sentences, length]` with EOS; rows of padding have no translation and come last.
    choices: the tokens that are forced or drawn.
    slots: how many sentences are decoded side by side; divides the number of sentences.
    extra_length: an output may have this many more tokens than its input.
    headroom: there is room for this many more tokens than `length`; a longer output is truncated. None never truncates.

  Raises:
    InputError: the search needs more memory than there is.
  """
  max_length = source.shape[1] + (extra_length if headroom is None else headroom)
  memories, step, cache, size = _begun(model, options, params, source, slots, max_length)
  _require_memory(size, f"{slots} sentences of {source.shape[1]} tokens with {options.beam_size} hypotheses each")

  admit = functools.partial(_admit, memories)
  limits = _limits(source, extra_length)
  restrict = restriction(choices, limits, options.sampling)
  return continuous_batching.search(step, admit, cache, limits, slots, max_length, options, restrict)


def bytes_needed(
  model: "nn.Module",
  options: SearchOptions,
  params: Params,
  length: int,
  *,
  slots: int,
  queue: int,
  headroom: int,
) -> int:
  """The bytes that `search` needs, by tracing alone.

  Args:
    model, options, params, slots, headroom: as in `search`.
    length: tokens of each sentence.
    queue: the sentences per slot.
  """
  sizes = []

  def begin(params: Params, source: jax.Array) -> None:
    sizes.append(_begun(model, options, params, source, slots, length + headroom)[-1])

  jax.eval_shape(begin, params, jax.ShapeDtypeStruct((queue * slots, length), jnp.int32))
  return sizes[0]


def _begun(
  model: "nn.Module", options: SearchOptions, params: Params, source: jax.Array, slots: int, max_length: int
) -> tuple[PyTree, Step, PyTree, int]:
  """The memories of all sentences, the decoder's step and first cache, and the bytes that the search needs."""
  memories, encoding = encode_all(model, params, slots, source)
  step, cache, decoding = _decoder(model, params, jax.tree.map(lambda x: x[:slots], memories), max_length, options)
  return memories, step, cache, _bytes((cache, memories)) + _COPIES * max(encoding, decoding)


def search_without_queue(
  model: "nn.Module", options: SearchOptions, params: Params, source: jax.Array, *, extra_length: int
) -> Hypotheses:
  """`search` without a queue: all sentences start together, each has room for its output, and the last one ends it.

  The two dimensions of `source` may be symbolic, as `jax.export` has them.
  """
  max_length = source.shape[1] + extra_length
  memories = jax.vmap(functools.partial(_memory, model, params))(source)
  cache = first_cache(model, params, memories, max_length, options.beam_size)
  step = functools.partial(decode_step, model, options, params)
  return beam_search(step, cache, _limits(source, extra_length), max_length, options)


def _admit(memories: PyTree, cache: PyTree, slot: jax.Array, sentence: jax.Array) -> PyTree:
  """The cache with the memory of a sentence in a slot."""

  def put(old: jax.Array, every: jax.Array) -> jax.Array:
    return jax.lax.dynamic_update_index_in_dim(old, every[sentence], slot, 0)

  return dataclasses.replace(cache, memory=jax.tree.map(put, cache.memory, memories))


def _limits(source: jax.Array, extra_length: int) -> jax.Array:
  lengths = jnp.sum(source != PAD, axis=1, dtype=jnp.int32)
  return jnp.where(lengths > 0, lengths + extra_length, 0)


def encode_all(model: "nn.Module", params: Params, slots: int, source: jax.Array) -> tuple[PyTree, int]:
  """The decoder's memory of every sentence `[sentences, length]`, and the bytes of the largest array on the way.

  It is computed for `slots` sentences at a time. Groups of padding cost nothing.
  """
  groups = source.reshape(-1, slots, source.shape[1])
  encode_group, largest = _traced(jax.vmap(functools.partial(_memory, model, params)), groups[0])

  def encode_unless_padding(group: jax.Array) -> PyTree:
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(encode_group, group))
    return jax.lax.cond(jnp.any(group != PAD), encode_group, lambda _: nothing, group)

  return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), jax.lax.map(encode_unless_padding, groups)), largest


def _memory(model: "nn.Module", params: Params, source: jax.Array) -> PyTree:
  """The decoder's memory of one sentence `[length]`."""
  variables = {"params": params}
  memory = _encode(model, variables, source)
  return model.apply(variables, memory, source != PAD, method="precompute_cross_attention")


def _decoder(
  model: "nn.Module", params: Params, memories: PyTree, max_length: int, options: SearchOptions
) -> tuple[Step, PyTree, int]:
  """The decoder's step and first cache, for slots with these memories; and the bytes of the step's largest array."""
  step = functools.partial(decode_step, model, options, params)
  cache = first_cache(model, params, memories, max_length, options.beam_size)
  slots = jax.tree.leaves(memories)[0].shape[0]
  beams = jnp.zeros((slots, options.beam_size), jnp.int32)
  traced_step, largest = _traced(step, cache, beams[:, 0], beams, beams)
  return traced_step, cache, largest


def first_cache(model: "nn.Module", params: Params, memories: PyTree, max_length: int, beams: int) -> PyTree:
  """The decoder's cache before the first token, for sentences with these memories."""

  def init_cache(memory: PyTree) -> PyTree:
    return model.apply({"params": params}, memory, max_length, beams, method="init_cache")

  return jax.vmap(init_cache)(memories)


def decode_step(
  model: "nn.Module",
  options: SearchOptions,
  params: Params,
  cache: PyTree,
  positions: jax.Array,
  parents: jax.Array,
  tokens: jax.Array,
) -> tuple[jax.Array, PyTree]:
  """A step of all hypotheses: log P(next token) `[sentences, beams, vocab]`, and the new cache; see `beam_search`."""
  variables = {"params": params}

  def step(cache: PyTree, position: jax.Array, parents: jax.Array, tokens: jax.Array) -> PyTree:
    return model.apply(variables, cache, position, parents, tokens, method="decode_step")

  hidden, cache = jax.vmap(step)(cache, positions, parents, tokens)
  return _log_probs(model, variables, hidden, options.without), cache


def _require_memory(size: int, what: str) -> None:
  """Raises InputError, when the search is compiled, if the searches that run side by side need more than there is."""
  size, memory = devices.concurrency() * size, devices.memory()
  if memory is not None and size > memory:
    raise InputError(
      f"to search for the translations of {what} takes {gigabytes(size)}, but there are {gigabytes(memory)}: "
      "lower the beam size, the batch size, config.decode.extra_length or config.decode.max_source_length"
    )


def _traced(function: Callable[..., PyTree], *arguments: PyTree) -> tuple[Callable[..., PyTree], int]:
  """The function, traced for arrays like these arguments, and the bytes of its largest array."""
  from jax.extend.core import jaxpr_as_fun  # brings Pallas with it, which takes a tenth of a second

  from transformer_jax.analysis import operations  # imports it, too

  jaxpr, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
  again = jaxpr_as_fun(jaxpr)
  structure = jax.tree.structure(shapes)
  return lambda *args: jax.tree.unflatten(structure, again(*jax.tree.leaves(args))), operations.largest(jaxpr.jaxpr)


def _bytes(tree: PyTree) -> int:
  return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))


def score(
  model: "nn.Module", params: Params, pairs: tuple[jax.Array, jax.Array], without: tuple[int, ...] = ()
) -> jax.Array:
  """Computes log P(target | source) for each pair.

  Args:
    model: an encoder-decoder of the registry.
    params: the model's parameters.
    pairs: sources and targets, each `[sentences, length]` with EOS.
    without: tokens that get no probability, as in `SearchOptions.without`.

  Returns:
    `[sentences]` float32; 0 for a row of padding.
  """
  variables = {"params": params}

  def decode(source: jax.Array, target: jax.Array) -> PyTree:
    memory = _encode(model, variables, source)
    length = len(target)
    positions = jnp.arange(length)
    shifted = decoder_input(target, positions, model.config.start_token)
    cross_mask = masking.padding_mask(target != PAD, source != PAD)
    return model.apply(variables, shifted, positions, memory, masking.causal_mask(length), cross_mask, method="decode")

  def log_prob(pair: tuple[PyTree, jax.Array]) -> jax.Array:
    hidden, target = pair
    found = _log_probs(model, variables, hidden, without)  # [target, vocab]
    chosen = jnp.take_along_axis(found, target[:, None], axis=1)[:, 0]
    return jnp.sum(jnp.where(target == PAD, 0, chosen))

  # One sentence at a time: log-probabilities `[target, vocab]` of all sentences would take much memory.
  return jax.lax.map(log_prob, (jax.vmap(decode)(*pairs), pairs[1]))


def _encode(model: "nn.Module", variables: PyTree, source: jax.Array) -> PyTree:
  """One sentence `[length]` -> memory `[length, model]`."""
  valid = source != PAD
  positions = jnp.arange(source.shape[0])
  return model.apply(variables, source, positions, masking.padding_mask(valid, valid), method="encode")


def _log_probs(model: "nn.Module", variables: PyTree, hidden: PyTree, without: tuple[int, ...]) -> jax.Array:
  """The decoder's output, `[..., model]` -> log P(next token), float32 `[..., vocab]`; that of `without` is -inf."""
  from transformer_jax.decoding.ensemble import Ensemble

  if isinstance(model, Ensemble):
    return jnp.asarray(model.apply(variables, hidden, without, method="log_probs"))
  logits: PyTree = model.apply(variables, hidden, method="logits")
  return log_softmax_without(logits, without)
