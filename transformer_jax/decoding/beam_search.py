"""Beam search (§6.1; Wu et al. 2016, §7) over any next-token distribution.

A hypothesis Y ends with EOS. Its score is log P(Y) / length_penalty(|Y|), where |Y| counts the EOS. The beam holds the
`beam_size` most probable unfinished hypotheses of a sentence. A step extends every one of them by every token
except PAD and the one that the decoder reads first, usually BOS:

- An extension by EOS is finished if it is among the `beam_size` most probable of all extensions.
- The `beam_size` most probable other extensions are the next beam.

A sentence is done when no unfinished hypothesis can still be among the `n_best` finished ones: its log-probability
can only fall, and no penalty is larger than that of the longest output allowed. With one hypothesis a sentence is
done at its first EOS, which is greedy search. By option (`patience`) it is done after a number of finished
hypotheses. That is quicker and can miss the best: where one extension is likely and all others are about equally
unlikely, EOS is often among the most probable ones, and the search ends with very short outputs.

Every function but `beam_search` takes one sentence, and `jax.vmap` makes the batch.
`decoding/continuous_batching.py` puts a queue around the same functions.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple, overload

import jax
import jax.numpy as jnp

from transformer_jax.config import Config, LengthPenalty
from transformer_jax.decoding.sampling import SamplingOptions
from transformer_jax.model.special_tokens import BOS, EOS, PAD
from transformer_jax.ops.top_k import top_k
from transformer_jax.runtime.values import PyTree

# step(cache, positions, parents, tokens) -> (log-probabilities, cache); see `beam_search`.
Step = Callable[[PyTree, jax.Array, jax.Array, jax.Array], tuple[jax.Array, PyTree]]


# What a program is compiled for. The exponent of the length penalty is a number that it reads.
_COMPILED = ["beam_size", "penalty", "n_best", "patience", "start", "renormalize", "sampling"]


@functools.partial(jax.tree_util.register_dataclass, data_fields=["length_penalty"], meta_fields=_COMPILED)
@dataclasses.dataclass(frozen=True)
class SearchOptions:
  """The options of a search, with the names of `config.decode`; a pytree, whose only leaf is `length_penalty`.

  Attributes:
    beam_size: unfinished hypotheses in the beam.
    penalty: the kind of length penalty.
    length_penalty: its exponent alpha, 0 or more.
    n_best: finished hypotheses that are kept, at most `beam_size`.
    patience: a sentence is also done when `patience * beam_size` hypotheses have finished (Kasai et al. 2022); 0 turns
      this off.
    start: the token that the decoder reads first, which no output has.
    renormalize: whether the softmax leaves out the tokens that no output has. If not, they keep their probability,
      and are never chosen.
    sampling: how outputs are drawn, with one hypothesis (`decoding/choices.py`); None searches.
  """

  beam_size: int
  penalty: LengthPenalty
  length_penalty: float
  n_best: int = 1
  patience: float = 0.0
  start: int = BOS
  renormalize: bool = False
  sampling: SamplingOptions | None = None

  @classmethod
  def of(cls, config: Config) -> "SearchOptions":
    """The options of a run: those of `config.decode`, and what follows from `config.model`."""
    decode, start = config.decode, config.model.start_token
    chosen = decode.beam_size, decode.penalty, decode.length_penalty
    return cls(*chosen, patience=decode.patience, start=start, renormalize=decode.renormalize)

  @property
  def never(self) -> tuple[int, ...]:
    """The tokens that no output has."""
    return tuple(sorted({PAD, self.start}))

  @property
  def without(self) -> tuple[int, ...]:
    """The tokens that get no probability."""
    return self.never if self.renormalize else ()


def log_softmax_without(logits: jax.Array, without: tuple[int, ...]) -> jax.Array:
  """The logits `[..., vocab]` -> log P(next token), float32 `[..., vocab]`; that of the tokens `without` is -inf."""
  found = jax.nn.log_softmax(logits)
  return jax.nn.log_softmax(found.at[..., jnp.array(without)].set(-jnp.inf)) if without else found


class Hypotheses(NamedTuple):
  """Finished hypotheses of one sentence, best first.

  Attributes:
    tokens: `[n_best, max_length]` int32, with PAD after the EOS.
    lengths: `[n_best]` int32, the number of tokens with the EOS; 0 where there is no hypothesis.
    log_probs: `[n_best]` float32, log P(Y); -inf where there is no hypothesis.
    scores: `[n_best]` float32, log P(Y) / length_penalty(|Y|).
  """

  tokens: jax.Array
  lengths: jax.Array
  log_probs: jax.Array
  scores: jax.Array


class Beam(NamedTuple):
  """The unfinished hypotheses of one sentence, most probable first.

  Attributes:
    tokens: `[beams, max_length]` int32.
    log_probs: `[beams]` float32; -inf where there are fewer than `beam_size` hypotheses.
    parents: `[beams]` int32, which hypothesis of the previous beam each one extends.
    last: `[beams]` int32, the newest token of each.
  """

  tokens: jax.Array
  log_probs: jax.Array
  parents: jax.Array
  last: jax.Array


class Search(NamedTuple):
  """The search for one sentence's output, between two steps.

  Attributes:
    position: int32, the number of tokens of each unfinished hypothesis.
    beam: the unfinished hypotheses.
    finished: the best finished hypotheses so far.
    ended: int32, how many hypotheses have finished so far.
  """

  position: jax.Array
  beam: Beam
  finished: Hypotheses
  ended: jax.Array


def beam_search(step: Step, cache: PyTree, limits: jax.Array, max_length: int, options: SearchOptions) -> Hypotheses:
  """Finds the best hypotheses of sentences that start together and end with the last of them.

  Args:
    step: `step(cache, positions, parents, tokens)` returns log P(next token) as float32 `[sentences, beams, vocab]`,
      and the new cache. `positions` `[sentences]` count from 0. `tokens` `[sentences, beams]` are the newest tokens,
      `options.start` at position 0. `parents` `[sentences, beams]` tell which hypothesis of the previous step each one
      extends.
    cache: the model's cache before the first step.
    limits: `[sentences]` int32, the most tokens of an output with its EOS, at most `max_length`. Only EOS is allowed
      as the last one, so that every hypothesis is complete. A sentence with limit 0 has no hypothesis.
    max_length: the length of the result's rows.
    options: the options of the search.

  Returns:
    `Hypotheses`, each array with a leading axis `[sentences]`.
  """
  done = jax.vmap(functools.partial(is_done, options=options))

  def one_step(search: Search, log_probs: jax.Array, limit: jax.Array) -> Search:
    after = advance(search, log_probs, limit, options)
    # A sentence that is done stays as it is while the others go on.
    return jax.tree.map(functools.partial(jnp.where, is_done(search, limit, options)), search, after)

  def body(state: tuple[Search, PyTree]) -> tuple[Search, PyTree]:
    search, cache = state
    log_probs, cache = step(cache, search.position, search.beam.parents, search.beam.last)
    return jax.vmap(one_step)(search, log_probs, limits), cache

  new = new_search(max_length, options)
  start = jax.tree.map(lambda x: jnp.broadcast_to(x, (*limits.shape, *x.shape)), new), cache
  search, _ = jax.lax.while_loop(lambda state: ~jnp.all(done(state[0], limits)), body, start)
  return search.finished


def new_search(max_length: int, options: SearchOptions) -> Search:
  """The search before its first step: the beam is the empty hypothesis, and nothing has finished."""
  beams, n_best = options.beam_size, options.n_best
  beam = Beam(
    tokens=jnp.full((beams, max_length), PAD, jnp.int32),
    log_probs=jnp.full(beams, -jnp.inf).at[0].set(0.0),
    parents=jnp.zeros(beams, jnp.int32),
    last=jnp.full(beams, options.start, jnp.int32),
  )
  finished = Hypotheses(
    tokens=jnp.full((n_best, max_length), PAD, jnp.int32),
    lengths=jnp.zeros(n_best, jnp.int32),
    log_probs=jnp.full(n_best, -jnp.inf),
    scores=jnp.full(n_best, -jnp.inf),
  )
  return Search(jnp.int32(0), beam, finished, ended=jnp.int32(0))


def advance(search: Search, log_probs: jax.Array, limit: jax.Array, options: SearchOptions) -> Search:
  """One step of the search: every hypothesis of the beam gets one more token.

  Args:
    search: the search before the step.
    log_probs: `[beams, vocab]` float32, log P(next token) after each hypothesis.
    limit: int32, the most tokens of an output.
    options: the options of the search.
  """
  beam, position, length = search.beam, search.position, search.position + 1
  ends, next_log_probs, parents, tokens = extend(
    beam.log_probs, log_probs, only_eos=length >= limit, start=options.start
  )
  # `[1]` and not a scalar, which XLA would raise to the power with other last bits.
  scores = ends / length_penalty(options.penalty, options.length_penalty, length[None].astype(jnp.float32))
  new = Hypotheses(_write(beam.tokens, position, EOS), jnp.full_like(parents, length), ends, scores)
  next_beam = Beam(_write(beam.tokens[parents], position, tokens), next_log_probs, parents, tokens)
  ended = search.ended + jnp.sum(ends > -jnp.inf, dtype=jnp.int32)
  return Search(length, next_beam, _best(search.finished, new), ended)


def is_done(search: Search, limit: jax.Array, options: SearchOptions) -> jax.Array:
  """Whether no unfinished hypothesis can still be among the `n_best`, or an option ends the search; a boolean."""
  longest = limit.astype(jnp.float32)
  bound = jnp.max(search.beam.log_probs) / length_penalty(options.penalty, options.length_penalty, longest)
  done = (bound <= search.finished.scores[-1]) | (search.position >= limit)
  if options.beam_size == 1:
    done |= search.ended >= 1
  elif options.patience > 0:
    done |= search.ended >= jnp.maximum(options.patience * options.beam_size, 1)  # a tiny product is 0 in float32
  return done


@overload
def length_penalty(kind: LengthPenalty, alpha: float, length: float) -> float: ...
@overload
def length_penalty(kind: LengthPenalty, alpha: float, length: jax.Array) -> jax.Array: ...
def length_penalty(kind: LengthPenalty, alpha: float, length: jax.Array | float) -> jax.Array | float:
  """The length penalty: what log P(Y) is divided by, for an output of `length` tokens with its EOS.

  `gnmt` is ((5 + length) / 6) ** alpha (Wu et al. 2016, eq. 14), which the paper
  uses; `fairseq` is length ** alpha (Ott et al. 2019).

  >>> print(f"{length_penalty(LengthPenalty.GNMT, 0.6, 7.0):.3f} {length_penalty(LengthPenalty.FAIRSEQ, 1.0, 7.0):.3f}")
  1.516 7.000
  """
  return ((5 + length) / 6) ** alpha if kind is LengthPenalty.GNMT else length**alpha


def extend(
  beam_log_probs: jax.Array, log_probs: jax.Array, only_eos: jax.Array, start: int
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
  """Extends every hypothesis of the beam by every token, and chooses.

  Args:
    beam_log_probs: `[beams]`, log P of the hypotheses.
    log_probs: `[beams, vocab]` of the next token.
    only_eos: boolean, whether the output must end now.
    start: the token that the decoder reads first, which no output has.

  Returns:
    Four arrays `[beams]`. First the log-probability of each hypothesis that ends
    now, -inf where it does not. Then log-probability, parent and token of the
    most probable extensions by another token.
  """
  beams, vocab = log_probs.shape
  ends = beam_log_probs + log_probs[:, EOS]
  token = jnp.arange(vocab)
  forbidden = (token == start) | (token == EOS) | (token == PAD) | only_eos
  candidates = jnp.where(forbidden[None, :], -jnp.inf, beam_log_probs[:, None] + log_probs)
  extensions, chosen = top_k(candidates.reshape(-1), beams)
  most_probable, _ = jax.lax.top_k(jnp.concatenate([ends, extensions]), beams)
  ends = jnp.where(ends >= jnp.min(most_probable), ends, -jnp.inf)
  return ends, extensions, chosen // vocab, chosen % vocab


def _best(finished: Hypotheses, new: Hypotheses) -> Hypotheses:
  """The best of old and new hypotheses, as many as there are old ones.

  A score of -inf marks a missing hypothesis. Of equal scores the first wins, so
  that a missing new one never replaces a missing old one.
  """
  both = Hypotheses(*(jnp.concatenate(pair) for pair in zip(finished, new, strict=True)))
  _, best = jax.lax.top_k(both.scores, len(finished.scores))
  return Hypotheses(*(x[best] for x in both))


def _write(tokens: jax.Array, position: jax.Array, value: jax.Array | int) -> jax.Array:
  """`tokens` `[beams, length]` with `value`, one for each hypothesis or one for all, written at `position`."""
  here = jnp.arange(tokens.shape[1]) == position
  values = jnp.broadcast_to(value, len(tokens))
  return jnp.where(here[None, :], values[:, None], tokens).astype(tokens.dtype)
