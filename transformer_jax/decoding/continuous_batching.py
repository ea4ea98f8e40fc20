"""Continuous batching: beam search for many sentences in a few slots.

Sentences wait in a queue. Every slot holds the search of one sentence, and each step adds one token in all slots. A
sentence that is done leaves its slot, and the next one of the queue is admitted there. So no slot waits for the
longest output of a batch.

The searches have room for `max_length` tokens. A sentence that is not done by then leaves as truncated; the caller
searches it again with more room.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from transformer_jax.decoding.beam_search import Hypotheses, Search, SearchOptions, Step, advance, is_done, new_search
from transformer_jax.decoding.choices import Restrict
from transformer_jax.runtime.values import PyTree

# admit(cache, slot, sentence) -> cache; see `search`.
Admit = Callable[[PyTree, jax.Array, jax.Array], PyTree]
# Replaces the lengths of the hypotheses where an output did not fit into `max_length` tokens.
TRUNCATED = -1


class _State(NamedTuple):
  """The loop's state.

  Attributes:
    admitted: int32, how many sentences have had a slot so far.
    sentence: `[slots]` int32, the number of the sentence in each slot; the number of all sentences if it is free.
    searches: the search in each slot; every array has a leading axis `[slots]`.
    results: the results so far; every array has a leading axis `[sentences]`.
    cache: the model's cache, of all slots.
  """

  admitted: jax.Array
  sentence: jax.Array
  searches: Search
  results: Hypotheses
  cache: PyTree


def search(
  step: Step,
  admit: Admit,
  cache: PyTree,
  limits: jax.Array,
  slots: int,
  max_length: int,
  options: SearchOptions,
  restrict: Restrict | None = None,
) -> Hypotheses:
  """Finds the best hypotheses of each sentence, in one loop on the device.

  A sentence's result does not depend on its slot or on the other sentences, as long as its rows of `step` do not.

  Args:
    step: as in `beam_search`, with slots in place of sentences.
    admit: `admit(cache, slot, sentence)` returns the cache with a new sentence in a slot; both are int32 scalars.
    cache: the model's cache of all slots. A slot's part is not read before a sentence is admitted there.
    limits: `[sentences]` int32, as in `beam_search`, but may exceed `max_length`; sentences with limit 0 come last.
    slots: how many sentences are decoded side by side.
    max_length: how many tokens an output has room for.
    options: the options of the search.
    restrict: allows only the chosen tokens of a sentence (`decoding/choices.py`); None allows all.

  Returns:
    `Hypotheses`, each array with a leading axis `[sentences]`. All lengths of a truncated sentence are TRUNCATED, and
    its other values mean nothing.
  """
  sentences, queued = len(limits), jnp.sum(limits > 0)
  new = new_search(max_length, options)

  def unfinished(state: _State) -> jax.Array:
    return (state.admitted < queued) | jnp.any(state.sentence < sentences)

  def body(state: _State) -> _State:
    state = _fill(state, admit, queued, new)
    return _advance(state, *_next_tokens(state, step, restrict), limits, max_length, options)

  return jax.lax.while_loop(unfinished, body, _start(new, cache, slots, sentences)).results


def _start(new: Search, cache: PyTree, slots: int, sentences: int) -> _State:
  """The state before the first step: every slot is free."""
  free = jnp.full(slots, sentences, jnp.int32)
  return _State(jnp.int32(0), free, _repeat(new, slots), _repeat(new.finished, sentences), cache)


def _fill(state: _State, admit: Admit, queued: jax.Array, new: Search) -> _State:
  """Admits sentences of the queue to the free slots, one by one."""
  sentences = len(state.results.lengths)

  def can_admit(state: _State) -> jax.Array:
    return (state.admitted < queued) & jnp.any(state.sentence == sentences)

  def admit_next(state: _State) -> _State:
    slot = jnp.argmax(state.sentence == sentences).astype(jnp.int32)

    def put(old: jax.Array, new: jax.Array) -> jax.Array:
      return jax.lax.dynamic_update_index_in_dim(old, new, slot, 0)

    return state._replace(
      admitted=state.admitted + 1,
      sentence=put(state.sentence, state.admitted),
      searches=jax.tree.map(put, state.searches, new),
      cache=admit(state.cache, slot, state.admitted),
    )

  return jax.lax.while_loop(can_admit, admit_next, state)


def _next_tokens(state: _State, step: Step, restrict: Restrict | None) -> tuple[jax.Array, PyTree]:
  """log P(next token) of the hypotheses in every slot, and the new cache."""
  searches = state.searches
  log_probs, cache = step(state.cache, searches.position, searches.beam.parents, searches.beam.last)
  if restrict is not None:
    log_probs = jax.vmap(restrict)(log_probs, state.sentence, searches.position)
  return log_probs, cache


def _advance(
  state: _State, log_probs: jax.Array, cache: PyTree, limits: jax.Array, max_length: int, options: SearchOptions
) -> _State:
  """One more token in every slot, by log P(next token); sentences that are done, or out of room, leave."""
  sentences, searches = len(limits), state.searches
  limit = limits.at[state.sentence].get(mode="fill", fill_value=1)
  searches = jax.vmap(functools.partial(advance, options=options))(searches, log_probs, limit)
  done = jax.vmap(functools.partial(is_done, options=options))(searches, limit)
  leaves = done | (searches.position >= max_length)
  found = searches.finished._replace(lengths=jnp.where(done[:, None], searches.finished.lengths, TRUNCATED))
  place = jnp.where(leaves, state.sentence, sentences)  # a sentence that stays gets an index out of bounds: not written
  results = jax.tree.map(lambda old, new: old.at[place].set(new, mode="drop"), state.results, found)
  return _State(state.admitted, jnp.where(leaves, sentences, state.sentence), searches, results, cache)


def _repeat(tree: PyTree, count: int) -> PyTree:
  return jax.tree.map(lambda x: jnp.broadcast_to(x, (count, *x.shape)), tree)
