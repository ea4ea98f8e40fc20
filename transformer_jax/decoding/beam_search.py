"""Beam search (§6.1) over any next-token distribution; knows no model.

A hypothesis Y ends with EOS and scores log P(Y) / penalty(|Y|), where |Y|
counts the EOS. The beam holds the `beam_size` most probable unfinished
hypotheses. In each step every one of them is extended by every token but BOS
and PAD, which are never part of one. An extension by EOS that is among the
`beam_size` most probable of all extensions is finished, and the most probable
others are the next beam.

A sentence is done when no unfinished hypothesis can still be among the `n_best`:
its log-probability can only fall, and no penalty is larger than that of the
longest output allowed. (To stop at `beam_size` finished hypotheses is quicker, by
option, and can miss the best: EOS is often among the most probable extensions
when one is likely and all others are about equal, and the beam fills up with
stumps.) With a beam of one hypothesis a sentence is done at its first EOS:
greedy search.

Sentences wait in a queue for one of a few slots, which are advanced together by
one token a step; a sentence that is done leaves its slot to the next. So no slot
waits for the longest output of a batch. One that needs more tokens than there are
places leaves, too, and is to be searched for with more of them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from transformer_jax.config import LengthPenalty
from transformer_jax.data.tokenizer import BOS, EOS, PAD
from transformer_jax.ops.top_k import top_k

# step(cache, positions, parents, tokens) -> (log-probabilities, cache); see `beam_search`.
Step = Callable[[Any, jax.Array, jax.Array, jax.Array], tuple[jax.Array, Any]]
# enter(cache, slot, sentence) -> cache; see `beam_search`.
Enter = Callable[[Any, jax.Array, jax.Array], Any]
# In place of the lengths of hypotheses, where the search needs more places for tokens than it has.
OUTGROWN = -1


class Hypotheses(NamedTuple):
  """Finished hypotheses of each sentence, best first.

  Attributes:
    tokens: `[sentences, n_best, max_length]` int32, padding after the EOS.
    lengths: `[sentences, n_best]` int32, tokens with the EOS; 0 where there is no hypothesis, and OUTGROWN
      throughout where the search was given up, so that what is here is not the result.
    log_probs: `[sentences, n_best]` float32, log P(Y); -inf where there is none.
    scores: `[sentences, n_best]` float32, log P(Y) / penalty(|Y|).
  """

  tokens: jax.Array
  lengths: jax.Array
  log_probs: jax.Array
  scores: jax.Array


class _Beam(NamedTuple):
  """The unfinished hypotheses, most probable first; fewer than `beam_size` leave places of log-probability -inf.

  Attributes:
    tokens: `[slots, beams, max_length]`.
    log_probs: `[slots, beams]`.
    parents: `[slots, beams]`, the place in the step before of the hypothesis that each extends.
    last: `[slots, beams]`, the newest token.
  """

  tokens: jax.Array
  log_probs: jax.Array
  parents: jax.Array
  last: jax.Array


class _Slots(NamedTuple):
  """The sentences that are searched for.

  Attributes:
    sentence: `[slots]`, its number; the number of all sentences where a slot is free.
    position: `[slots]`, tokens of its unfinished hypotheses.
    beam: of each slot.
    finished: of each slot.
    ended: `[slots]`, how many hypotheses have finished.
  """

  sentence: jax.Array
  position: jax.Array
  beam: _Beam
  finished: Hypotheses
  ended: jax.Array


class _Search(NamedTuple):
  entered: jax.Array  # sentences that have had a slot so far
  slots: _Slots
  results: Hypotheses
  cache: Any


def penalty(kind: LengthPenalty, alpha: float, length: jax.Array | float) -> Any:
  """What a log-probability is divided by, for an output of `length` tokens with its EOS.

  `gnmt` is ((5 + length) / 6) ** alpha (Wu et al. 2016, eq. 14), which the paper
  uses; `fairseq` is length ** alpha (Ott et al. 2019).
  """
  return ((5 + length) / 6) ** alpha if kind is LengthPenalty.GNMT else length**alpha


def beam_search(
  step: Step,
  enter: Enter,
  cache: Any,
  limits: jax.Array,
  *,
  slots: int,
  beam_size: int,
  max_length: int,
  length_penalty: LengthPenalty,
  alpha: float,
  n_best: int = 1,
  patience: float = 0.0,
) -> Hypotheses:
  """The best hypotheses of each sentence, in one loop on the device.

  A sentence's result does not depend on the sentences beside it, nor on its
  slot, as long as its rows of `step` do not.

  Args:
    step: `step(cache, positions, parents, tokens)` gives log P(next token) as
      float32 `[slots, beams, vocab]`, and the new cache. `positions` `[slots]`
      are from 0 in each sentence; `tokens` `[slots, beams]` are the newest
      tokens, BOS at position 0; `parents` `[slots, beams]` tell which
      hypothesis of the step before each one extends.
    enter: `enter(cache, slot, sentence)` gives the cache with a new sentence in
      a slot; both are int32 scalars.
    cache: what `step` and `enter` start from.
    limits: `[sentences]` int32, the most tokens of an output with its EOS: at
      the last place only EOS is allowed, so that every hypothesis is complete.
      0 is a sentence that is not searched for; all of these come last.
    slots: sentences that are advanced together.
    beam_size: unfinished hypotheses kept for a sentence.
    max_length: places for the tokens of an output; a sentence with a higher
      limit that is not done when they are full is given up.
    length_penalty: the kind of penalty.
    alpha: its exponent, 0 or more.
    n_best: finished hypotheses kept for a sentence, at most `beam_size`.
    patience: a sentence is also done when `patience * beam_size` of its
      hypotheses have finished (Kasai et al. 2022); 0 is never.
  """
  sentences = len(limits)
  waiting = jnp.sum(limits > 0)

  def unfinished(search: _Search) -> jax.Array:
    return (search.entered < waiting) | jnp.any(search.slots.sentence < sentences)

  def fill(search: _Search) -> _Search:
    """Sentences of the queue enter the free slots, one by one."""

    def can_enter(search: _Search) -> jax.Array:
      return (search.entered < waiting) & jnp.any(search.slots.sentence == sentences)

    def enter_one(search: _Search) -> _Search:
      slot = jnp.argmax(search.slots.sentence == sentences).astype(jnp.int32)
      new = _fresh(1, search.entered, beam_size, n_best, max_length)
      entered = jax.tree.map(lambda old, x: jax.lax.dynamic_update_slice_in_dim(old, x, slot, 0), search.slots, new)
      return _Search(search.entered + 1, entered, search.results, enter(search.cache, slot, search.entered))

    return jax.lax.while_loop(can_enter, enter_one, search)

  def is_done(
    extensions: jax.Array, finished: Hypotheses, length: jax.Array, limit: jax.Array, ended: jax.Array
  ) -> jax.Array:
    """Whether no unfinished hypothesis of a slot can still be among its `n_best`.

    No score that one can reach is above its present log-probability over the
    penalty of the longest output allowed. A sentence is also done at its limit,
    and when as many hypotheses have `ended` as greedy search or `patience` wants.
    """
    most_penalty = penalty(length_penalty, alpha, limit.astype(jnp.float32))
    done = jnp.max(extensions, axis=1) / most_penalty <= finished.scores[:, -1]
    done |= length >= limit
    if beam_size == 1 or patience > 0:
      done |= ended >= (1 if beam_size == 1 else patience * beam_size)
    return done

  def advance(search: _Search) -> _Search:
    """One token more for each slot; what is done leaves."""
    now, beam = search.slots, search.slots.beam
    log_probs, cache = step(search.cache, now.position, beam.parents, beam.last)
    length = now.position + 1
    limit = limits.at[now.sentence].get(mode="fill", fill_value=1)
    ends, extensions, parents, tokens = _extensions(log_probs, beam.log_probs, length >= limit)
    scores = ends / penalty(length_penalty, alpha, length[:, None].astype(jnp.float32))
    finished = _keep_best(now.finished, _set(beam.tokens, now.position, EOS), length, ends, scores)
    ended = now.ended + jnp.sum(ends > -jnp.inf, axis=1, dtype=jnp.int32)
    done = is_done(extensions, finished, length, limit, ended)
    leaves = done | (length >= max_length)
    leaving = jnp.where(leaves, now.sentence, sentences)  # free slots leave to nowhere, too
    result = finished._replace(lengths=jnp.where(done[:, None], finished.lengths, OUTGROWN))
    results = jax.tree.map(lambda old, x: old.at[leaving].set(x, mode="drop"), search.results, result)
    next_beam = _next_beam(beam, now.position, extensions, parents, tokens)
    after = _Slots(jnp.where(leaves, sentences, now.sentence), length, next_beam, finished, ended)
    return _Search(search.entered, after, results, cache)

  nothing = _fresh(sentences, 0, beam_size, n_best, max_length).finished
  free = _fresh(slots, sentences, beam_size, n_best, max_length)
  start = _Search(jnp.int32(0), free, nothing, cache)
  return jax.lax.while_loop(unfinished, lambda search: advance(fill(search)), start).results


def _fresh(slots: int, sentence: jax.Array | int, beam_size: int, n_best: int, max_length: int) -> _Slots:
  """Slots before the first token."""
  beam = _Beam(
    tokens=jnp.full((slots, beam_size, max_length), PAD, jnp.int32),
    log_probs=jnp.full((slots, beam_size), -jnp.inf).at[:, 0].set(0.0),
    parents=jnp.zeros((slots, beam_size), jnp.int32),
    last=jnp.full((slots, beam_size), BOS, jnp.int32),
  )
  finished = Hypotheses(
    tokens=jnp.full((slots, n_best, max_length), PAD, jnp.int32),
    lengths=jnp.zeros((slots, n_best), jnp.int32),
    log_probs=jnp.full((slots, n_best), -jnp.inf),
    scores=jnp.full((slots, n_best), -jnp.inf),
  )
  zeros = jnp.zeros(slots, jnp.int32)
  return _Slots(jnp.full(slots, sentence, jnp.int32), zeros, beam, finished, zeros)


def _extensions(
  log_probs: jax.Array, beam: jax.Array, last: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
  """The beam's extensions by one token.

  Args:
    log_probs: `[slots, beams, vocab]` of the next token.
    beam: `[slots, beams]`, log-probabilities of the hypotheses.
    last: `[slots]`, whether only EOS is allowed.

  Returns:
    Each `[slots, beams]`: log-probability of each hypothesis that ends now,
    -inf where it does not; and log-probability, parent and token of the best
    ones that go on.
  """
  slots, beams, vocab = log_probs.shape
  ends = beam + log_probs[:, :, EOS]
  token = jnp.arange(vocab)
  special = (token == BOS) | (token == EOS) | (token == PAD)
  forbidden = special[None, None] | last[:, None, None]
  candidates = jnp.where(forbidden, -jnp.inf, beam[:, :, None] + log_probs)
  extensions, chosen = top_k(candidates.reshape(slots, -1), beams)
  least, _ = jax.lax.top_k(jnp.concatenate([ends, extensions], axis=1), beams)
  ends = jnp.where(ends >= jnp.min(least, axis=1, keepdims=True), ends, -jnp.inf)
  return ends, extensions, chosen // vocab, chosen % vocab


def _next_beam(beam: _Beam, position: jax.Array, log_probs: jax.Array, parents: jax.Array, tokens: jax.Array) -> _Beam:
  past = jnp.take_along_axis(beam.tokens, parents[:, :, None], axis=1)
  return _Beam(_set(past, position, tokens), log_probs, parents, tokens)


def _keep_best(
  finished: Hypotheses, tokens: jax.Array, length: jax.Array, log_probs: jax.Array, scores: jax.Array
) -> Hypotheses:
  """The best of `finished` and of `[slots, beams]` new ones of `length` `[slots]` tokens; a score of -inf is none.

  Of equal scores the first wins, so that nothing new takes the place of an old "none".
  """
  new = Hypotheses(tokens, jnp.broadcast_to(length[:, None], scores.shape), log_probs, scores)
  pool = Hypotheses(*(jnp.concatenate([a, b], axis=1) for a, b in zip(finished, new, strict=True)))
  _, best = jax.lax.top_k(pool.scores, finished.scores.shape[1])
  return Hypotheses(*(jnp.take_along_axis(x, best.reshape(*best.shape, *[1] * (x.ndim - 2)), axis=1) for x in pool))


def _set(tokens: jax.Array, position: jax.Array, value: jax.Array | int) -> jax.Array:
  """`tokens` with `value` `[slots, beams]` at `position` `[slots]`."""
  here = jnp.arange(tokens.shape[2])[None] == position[:, None]  # [slots, length]
  value = jnp.broadcast_to(value, tokens.shape[:2])
  return jnp.where(here[:, None], value[:, :, None], tokens).astype(tokens.dtype)
