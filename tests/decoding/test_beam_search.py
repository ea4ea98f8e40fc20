"""Beam search on toys: a random model of a tiny vocabulary, whose every sequence can be tried."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_jax.config import LengthPenalty
from transformer_jax.decoding.beam_search import beam_search, penalty

PAD, UNK, BOS, EOS = range(4)
VOCAB = 7
PENALTIES = [
  (LengthPenalty.GNMT, 0.0),
  (LengthPenalty.GNMT, 0.6),
  (LengthPenalty.GNMT, 2.0),
  (LengthPenalty.FAIRSEQ, 1.0),
  (LengthPenalty.FAIRSEQ, 1.7),
]


class Toy:
  """P(next token) that depends on everything so far through a hash; one table a sentence."""

  def __init__(self, seed, sentences, eos_bonus=0.0, states=101, vocab=VOCAB):
    logits = np.random.default_rng(seed).normal(size=(sentences, states, vocab)) * 2
    logits[:, :, EOS] += eos_bonus
    self.table = np.asarray(jax.nn.log_softmax(logits.astype(np.float32)))
    self.states = states

  def next_state(self, state, token):
    return (state * 13 + token * 7 + 5) % self.states

  def start(self, beams):
    return jnp.zeros((len(self.table), beams), jnp.int32)

  def step(self, cache, position, parents, tokens):
    state = self.next_state(jnp.take_along_axis(cache, parents, axis=1), tokens)
    return jnp.take_along_axis(jnp.asarray(self.table), state[:, :, None], axis=1), state

  def log_probs(self, sentence, tokens):
    """Of the next token, after these."""
    state = 0
    for token in [BOS, *tokens]:
      state = self.next_state(state, token)
    return self.table[sentence, state]

  def log_prob(self, sentence, tokens):
    return sum(float(self.log_probs(sentence, tokens[:i])[token]) for i, token in enumerate(tokens))

  def search(self, limits, beam_size, kind=LengthPenalty.GNMT, alpha=0.6, n_best=1, max_length=None):
    @jax.jit
    def run(limits):
      return beam_search(
        self.step,
        self.start(beam_size),
        limits,
        beam_size=beam_size,
        max_length=max_length or int(max(limits_list)),
        length_penalty=kind,
        alpha=alpha,
        bos=BOS,
        eos=EOS,
        pad=PAD,
        n_best=n_best,
      )

    limits_list = list(limits)
    return jax.device_get(run(jnp.asarray(limits_list, jnp.int32)))


def sequences(found, sentence):
  """The hypotheses of a sentence as tuples of tokens."""
  return [tuple(tokens[:n].tolist()) for tokens, n in zip(found.tokens[sentence], found.lengths[sentence], strict=True)]


def exhaustive(toy, sentence, limit, kind, alpha):
  """All (score, tokens), best first."""
  words = [token for token in range(VOCAB) if token not in (PAD, BOS, EOS)]
  every = [(*begin, EOS) for length in range(limit) for begin in itertools.product(words, repeat=length)]
  scored = [(toy.log_prob(sentence, tokens) / penalty(kind, alpha, float(len(tokens))), tokens) for tokens in every]
  return sorted(scored, reverse=True)


def reference(toy, sentence, limit, beam_size, kind, alpha):
  """Beam search as its docstring says, without its early end: all finished (score, tokens), best first."""
  beam, finished = [(0.0, ())], []
  for length in range(1, limit + 1):
    extensions = []
    for log_prob, tokens in beam:
      next_log_probs = toy.log_probs(sentence, tokens)
      allowed = [EOS] if length == limit else [token for token in range(VOCAB) if token not in (PAD, BOS)]
      extensions += [(log_prob + float(next_log_probs[token]), (*tokens, token)) for token in allowed]
    extensions.sort(reverse=True)
    finished += [extension for extension in extensions[:beam_size] if extension[1][-1] == EOS]
    beam = [extension for extension in extensions if extension[1][-1] != EOS][:beam_size]
  return sorted(((p / penalty(kind, alpha, float(len(tokens))), tokens) for p, tokens in finished), reverse=True)


@pytest.mark.parametrize(("kind", "alpha"), PENALTIES)
def test_wide_beam_equals_exhaustive_search(kind, alpha):
  toy, limits, n_best = Toy(seed=3, sentences=3), [5, 3, 4], 5
  found = toy.search(limits, beam_size=400, kind=kind, alpha=alpha, n_best=n_best)
  for sentence, limit in enumerate(limits):
    best = exhaustive(toy, sentence, limit, kind, alpha)[:n_best]
    assert sequences(found, sentence) == [tokens for _, tokens in best]
    np.testing.assert_allclose(found.scores[sentence], [score for score, _ in best], rtol=1e-5)
    own = [toy.log_prob(sentence, tokens) for _, tokens in best]
    np.testing.assert_allclose(found.log_probs[sentence], own, rtol=1e-5)


@pytest.mark.parametrize(("kind", "alpha"), PENALTIES)
@pytest.mark.parametrize("beam_size", [2, 3, 5])
def test_equals_plain_beam_search_which_does_not_end_early(beam_size, kind, alpha):
  limits = [17, 11, 13, 7, 5, 2]
  toy = Toy(seed=beam_size, sentences=len(limits))
  found = toy.search(limits, beam_size, kind, alpha, n_best=beam_size)
  for sentence, limit in enumerate(limits):
    best = reference(toy, sentence, limit, beam_size, kind, alpha)[:beam_size]
    assert [tokens for tokens in sequences(found, sentence) if tokens] == [tokens for _, tokens in best]
    np.testing.assert_allclose(found.scores[sentence, : len(best)], [score for score, _ in best], rtol=1e-5)


def test_one_hypothesis_is_greedy():
  limits = [19] * 23
  toy = Toy(seed=0, sentences=len(limits), eos_bonus=1.0)
  found = toy.search(limits, beam_size=1)
  for sentence, limit in enumerate(limits):
    tokens = []
    while EOS not in tokens:
      next_log_probs = toy.log_probs(sentence, tokens).copy()
      next_log_probs[[PAD, BOS]] = -math.inf
      tokens.append(EOS if len(tokens) == limit - 1 else int(next_log_probs.argmax()))
    assert sequences(found, sentence) == [tuple(tokens)]


def test_neighbours_change_nothing_to_the_last_bit():
  limits = [13, 3, 29, 0, 7]
  toy = Toy(seed=1, sentences=5)
  together = toy.search(limits, beam_size=3, n_best=3, max_length=29)
  for sentence in range(len(limits)):
    others_off = [limit if i == sentence else 0 for i, limit in enumerate(limits)]
    alone = toy.search(others_off, beam_size=3, n_best=3, max_length=29)
    for a, b in zip(alone, together, strict=True):
      np.testing.assert_array_equal(a[sentence], b[sentence])


def test_every_hypothesis_is_complete_and_within_its_limit():
  limits = [1, 2, 5, 11]
  found = Toy(seed=2, sentences=4, eos_bonus=-9.0).search(limits, beam_size=3, n_best=3)
  for sentence, limit in enumerate(limits):
    for rank, tokens in enumerate(sequences(found, sentence)):
      if limit == 1 and rank > 0:
        assert tokens == () and found.scores[sentence, rank] == -math.inf
        continue
      assert 1 <= len(tokens) <= limit
      assert tokens.index(EOS) == len(tokens) - 1
      assert not {PAD, BOS} & set(tokens)
      assert set(found.tokens[sentence, rank, len(tokens) :].tolist()) <= {PAD}


def test_best_come_first_and_differ():
  found = Toy(seed=5, sentences=11).search([9] * 11, beam_size=5, n_best=5)
  assert (np.diff(found.scores, axis=1) <= 0).all()
  for sentence in range(11):
    assert len(set(sequences(found, sentence))) == 5


def test_a_row_without_limit_costs_nothing_and_has_no_hypothesis():
  found = Toy(seed=4, sentences=2).search([0, 0], beam_size=2, max_length=3)
  assert (found.tokens == PAD).all()
  assert (found.lengths == 0).all()
  assert (found.scores == -math.inf).all()


def test_ends_as_soon_as_no_unfinished_hypothesis_can_win():
  """After "EOS" with probability 0.9 at once, nothing else can be better: one step is enough."""
  probabilities = np.full(VOCAB, 0.1 / (VOCAB - 1), np.float32)
  probabilities[EOS] = 0.9
  steps = []

  def step(cache, position, parents, tokens):
    jax.debug.callback(lambda p: steps.append(int(p)), position)
    return jnp.broadcast_to(jnp.log(probabilities), (*tokens.shape, VOCAB)), cache

  found = beam_search(
    step,
    (),
    jnp.array([50, 50]),
    beam_size=4,
    max_length=50,
    length_penalty=LengthPenalty.GNMT,
    alpha=0.6,
    bos=BOS,
    eos=EOS,
    pad=PAD,
  )
  jax.block_until_ready(found)
  jax.effects_barrier()
  assert sequences(jax.device_get(found), 0) == [(EOS,)]
  assert len(steps) == 1


def test_a_large_vocabulary_is_not_sorted():
  """XLA takes the best without sorting only where it recognises its own pattern, and says nothing where it does not."""

  def search(table):
    def step(cache, position, parents, tokens):
      return jnp.broadcast_to(table, (*tokens.shape, len(table))), cache

    return beam_search(
      step,
      (),
      jnp.array([7, 7]),
      beam_size=5,
      max_length=7,
      length_penalty=LengthPenalty.FAIRSEQ,
      alpha=1.0,
      bos=BOS,
      eos=EOS,
      pad=PAD,
    )

  program = jax.jit(search).lower(jnp.zeros(9973)).compile().as_text()
  assert "TopK" in program
  assert " sort(" not in program


@pytest.mark.parametrize("length", [1, 2, 7, 50])
def test_penalties(length):
  assert penalty(LengthPenalty.GNMT, 0.6, float(length)) == pytest.approx(((5 + length) / 6) ** 0.6)
  assert penalty(LengthPenalty.FAIRSEQ, 0.6, float(length)) == pytest.approx(length**0.6)
  assert penalty(LengthPenalty.GNMT, 0.0, float(length)) == 1
