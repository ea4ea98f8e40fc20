"""Beam search (§6.1) over any next-token distribution; knows no model.

A hypothesis Y ends with EOS and scores log P(Y) / penalty(|Y|), where |Y|
counts the EOS. The beam holds the `beam_size` most probable unfinished
hypotheses. In each step every one of them is extended by every token; an
extension by EOS that is among the `beam_size` most probable of all extensions
is finished, and the most probable others are the next beam.

A sentence is done when no unfinished hypothesis can still be among the `n_best`:
its log-probability can only fall, and no penalty is larger than that of the
longest output allowed. (To stop at `beam_size` finished hypotheses, as some do,
is quicker and wrong: EOS is often among the most probable extensions when one
is likely and all others are about equal, and the beam fills up with stumps.)
With a beam of one hypothesis a sentence is done at its first EOS: greedy search.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from transformer_jax.config import LengthPenalty

# step(cache, position, parents, tokens) -> (log-probabilities, cache); see `beam_search`.
Step = Callable[[Any, jax.Array, jax.Array, jax.Array], tuple[jax.Array, Any]]


class Hypotheses(NamedTuple):
  """Finished hypotheses of each sentence, best first.

  Attributes:
    tokens: `[sentences, n_best, max_length]` int32, padding after the EOS.
    lengths: `[sentences, n_best]` int32, tokens with the EOS; 0 where there is no hypothesis.
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
    tokens: `[sentences, beams, max_length]`.
    log_probs: `[sentences, beams]`.
    parents: `[sentences, beams]`, the place in the step before of the hypothesis that each extends.
    last: `[sentences, beams]`, the newest token.
  """

  tokens: jax.Array
  log_probs: jax.Array
  parents: jax.Array
  last: jax.Array


class _Search(NamedTuple):
  position: jax.Array
  beam: _Beam
  finished: Hypotheses
  done: jax.Array  # [sentences]
  cache: Any


def penalty(kind: LengthPenalty, alpha: float, length: jax.Array | float) -> Any:
  """What a log-probability is divided by, for an output of `length` tokens with its EOS.

  `gnmt` is ((5 + length) / 6) ** alpha (Wu et al. 2016, eq. 14), which the paper
  uses; `fairseq` is length ** alpha (Ott et al. 2019).
  """
  return ((5 + length) / 6) ** alpha if kind is LengthPenalty.GNMT else length**alpha


def beam_search(
  step: Step,
  cache: Any,
  limits: jax.Array,
  *,
  beam_size: int,
  max_length: int,
  length_penalty: LengthPenalty,
  alpha: float,
  bos: int,
  eos: int,
  pad: int,
  n_best: int = 1,
) -> Hypotheses:
  """The best hypotheses of each sentence, in one loop on the device.

  A sentence's result does not depend on the sentences beside it as long as its
  rows of `step` do not.

  Args:
    step: `step(cache, position, parents, tokens)` gives log P(next token) as
      float32 `[sentences, beams, vocab]`, and the new cache. `position` is an
      int32 scalar from 0; `tokens` `[sentences, beams]` are the newest tokens,
      BOS at position 0; `parents` `[sentences, beams]` tell which hypothesis of
      the step before each one extends.
    cache: what `step` starts from.
    limits: `[sentences]` int32, the most tokens of an output with its EOS, at
      most `max_length`: at the last place only EOS is allowed, so that every
      hypothesis is complete. 0 is a sentence that is not searched for.
    beam_size: unfinished hypotheses kept for a sentence.
    max_length: places for the tokens of an output.
    length_penalty: the kind of penalty.
    alpha: its exponent, 0 or more.
    bos, eos, pad: special tokens; BOS and PAD are never part of a hypothesis.
    n_best: finished hypotheses kept for a sentence, at most `beam_size`.
  """
  most_penalty = penalty(length_penalty, alpha, jnp.maximum(limits, 1).astype(jnp.float32))

  def unfinished(search: _Search) -> jax.Array:
    return (search.position < max_length) & ~jnp.all(search.done)

  def advance(search: _Search) -> _Search:
    position, beam = search.position, search.beam
    log_probs, cache = step(search.cache, position, beam.parents, beam.last)
    length = position + 1
    ends, extensions, parents, tokens = _extensions(log_probs, beam.log_probs, length >= limits, bos, eos, pad)
    ends = jnp.where(search.done[:, None], -jnp.inf, ends)
    scores = ends / penalty(length_penalty, alpha, length.astype(jnp.float32))
    finished = _keep_best(search.finished, _set(beam.tokens, position, eos), length, ends, scores)
    hopeless = jnp.max(extensions, axis=1) / most_penalty <= finished.scores[:, -1]
    done = search.done | hopeless | (length >= limits)
    if beam_size == 1:
      done |= ends[:, 0] > -jnp.inf
    return _Search(length, _next_beam(beam, position, extensions, parents, tokens), finished, done, cache)

  start = _start(cache, limits, beam_size, n_best, max_length, bos, pad)
  return jax.lax.while_loop(unfinished, advance, start).finished


def _start(cache: Any, limits: jax.Array, beam_size: int, n_best: int, max_length: int, bos: int, pad: int) -> _Search:
  sentences = len(limits)
  beam = _Beam(
    tokens=jnp.full((sentences, beam_size, max_length), pad, jnp.int32),
    log_probs=jnp.full((sentences, beam_size), -jnp.inf).at[:, 0].set(0.0),
    parents=jnp.zeros((sentences, beam_size), jnp.int32),
    last=jnp.full((sentences, beam_size), bos, jnp.int32),
  )
  finished = Hypotheses(
    tokens=jnp.full((sentences, n_best, max_length), pad, jnp.int32),
    lengths=jnp.zeros((sentences, n_best), jnp.int32),
    log_probs=jnp.full((sentences, n_best), -jnp.inf),
    scores=jnp.full((sentences, n_best), -jnp.inf),
  )
  return _Search(jnp.int32(0), beam, finished, limits <= 0, cache)


def _extensions(
  log_probs: jax.Array, beam: jax.Array, last: jax.Array, bos: int, eos: int, pad: int
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
  """The beam's extensions by one token.

  Args:
    log_probs: `[sentences, beams, vocab]` of the next token.
    beam: `[sentences, beams]`, log-probabilities of the hypotheses.
    last: `[sentences]`, whether only EOS is allowed.
    bos, eos, pad: special tokens.

  Returns:
    Each `[sentences, beams]`: log-probability of each hypothesis that ends now,
    -inf where it does not; and log-probability, parent and token of the best
    ones that go on.
  """
  sentences, beams, vocab = log_probs.shape
  ends = beam + log_probs[:, :, eos]
  token = jnp.arange(vocab)
  special = (token == bos) | (token == eos) | (token == pad)
  forbidden = special[None, None] | last[:, None, None]
  candidates = jnp.where(forbidden, -jnp.inf, beam[:, :, None] + log_probs)
  # No slices of what `top_k` gives, here or by the caller: XLA would merge them with its own and sort everything.
  extensions, chosen = jax.lax.top_k(candidates.reshape(sentences, -1), beams)
  least, _ = jax.lax.top_k(jnp.concatenate([ends, extensions], axis=1), beams)
  ends = jnp.where(ends >= jnp.min(least, axis=1, keepdims=True), ends, -jnp.inf)
  return ends, extensions, chosen // vocab, chosen % vocab


def _next_beam(beam: _Beam, position: jax.Array, log_probs: jax.Array, parents: jax.Array, tokens: jax.Array) -> _Beam:
  past = jnp.take_along_axis(beam.tokens, parents[:, :, None], axis=1)
  return _Beam(_set(past, position, tokens), log_probs, parents, tokens)


def _keep_best(
  finished: Hypotheses, tokens: jax.Array, length: jax.Array, log_probs: jax.Array, scores: jax.Array
) -> Hypotheses:
  """The best of `finished` and of `[sentences, beams]` new ones of one length; a score of -inf is none.

  Of equal scores the first wins, so that nothing new takes the place of an old "none".
  """
  new = Hypotheses(tokens, jnp.full(scores.shape, length), log_probs, scores)
  pool = Hypotheses(*(jnp.concatenate([a, b], axis=1) for a, b in zip(finished, new, strict=True)))
  _, best = jax.lax.top_k(pool.scores, finished.scores.shape[1])
  return Hypotheses(*(jnp.take_along_axis(x, best.reshape(*best.shape, *[1] * (x.ndim - 2)), axis=1) for x in pool))


def _set(tokens: jax.Array, position: jax.Array, value: jax.Array | int) -> jax.Array:
  """`tokens` with `value` `[sentences, beams]` at `position`."""
  value = jnp.broadcast_to(value, tokens.shape[:2]).astype(tokens.dtype)
  return jax.lax.dynamic_update_index_in_dim(tokens, value, position, axis=2)
