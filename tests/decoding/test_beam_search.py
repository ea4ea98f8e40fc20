"""Beam search on toys: a random model of a tiny vocabulary, whose every sequence can be tried."""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.decoding.toy import BOS, EOS, PAD, UNK, VOCAB, Toy, exhaustive, reference, sequences
from tests.marks import long
from transformer_jax.config import LengthPenalty
from transformer_jax.decoding import continuous_batching
from transformer_jax.decoding.beam_search import SearchOptions, extend, length_penalty, log_softmax_without
from transformer_jax.decoding.continuous_batching import TRUNCATED

PENALTIES = [
  (LengthPenalty.GNMT, 0.0),
  (LengthPenalty.GNMT, 0.6),
  (LengthPenalty.GNMT, 2.0),
  (LengthPenalty.FAIRSEQ, 1.0),
  (LengthPenalty.FAIRSEQ, 1.7),
]


def assert_same_bits(found, i, expected, j):
  """Sentence i of one search and sentence j of another."""
  for a, b in zip(found, expected, strict=True):
    np.testing.assert_array_equal(a[i], b[j])


def assert_equals_reference(found, toy, limits, beam_size, kind=LengthPenalty.GNMT, alpha=0.6, patience=math.inf):
  for sentence, limit in enumerate(limits):
    best = reference(toy, sentence, limit, beam_size, kind, alpha, patience)[:beam_size]
    assert [tokens for tokens in sequences(found, sentence) if tokens] == [tokens for _, tokens in best]
    np.testing.assert_allclose(found.scores[sentence, : len(best)], [score for score, _ in best], rtol=1e-5)


def test_the_first_input_is_never_emitted():
  log_probs = jnp.log(jnp.array([[0.4, 0.1, 0.3, 0.2]]))  # PAD, UNK, BOS, EOS
  for start, expected in ((BOS, UNK), (PAD, BOS)):
    _, _, _, tokens = extend(jnp.zeros(1), log_probs, jnp.array(False), start)
    assert tokens.tolist() == [expected]


@pytest.mark.parametrize("start", [BOS, PAD])
def test_what_no_output_has_gets_no_probability_if_it_is_renormalised(start):
  logits = np.random.default_rng(0).standard_normal((3, VOCAB)).astype(np.float32)
  for renormalize in (False, True):
    options = SearchOptions(2, LengthPenalty.GNMT, 0.6, start=start, renormalize=renormalize)
    expected = np.exp(logits)
    if renormalize:
      expected[:, [PAD, start]] = 0
    found = jnp.exp(log_softmax_without(logits, options.without))
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("slots", [pytest.param(2, marks=pytest.mark.long), 3])
@pytest.mark.parametrize(("kind", "alpha"), PENALTIES)
def test_wide_beam_equals_exhaustive_search(kind, alpha, slots):
  toy, limits, n_best = Toy(seed=3, sentences=3), [5, 3, 4], 5
  found = toy.search(limits, beam_size=400, kind=kind, alpha=alpha, n_best=n_best, slots=slots)
  for sentence, limit in enumerate(limits):
    best = exhaustive(toy, sentence, limit, kind, alpha)[:n_best]
    assert sequences(found, sentence) == [tokens for _, tokens in best]
    np.testing.assert_allclose(found.scores[sentence], [score for score, _ in best], rtol=1e-5)
    own = [toy.log_prob(sentence, tokens) for _, tokens in best]
    np.testing.assert_allclose(found.log_probs[sentence], own, rtol=1e-5)


@pytest.mark.parametrize(
  ("beam_size", "kind", "alpha", "slots"),
  # Each penalty with each beam size and with each number of slots.
  [(size, *each, slots) for each in PENALTIES for size, slots in [(2, None), (3, 2), (5, 6)]],
)
def test_equals_plain_beam_search_which_does_not_end_early(beam_size, kind, alpha, slots):
  limits = [17, 11, 13, 7, 5, 2]
  toy = Toy(seed=beam_size, sentences=len(limits))
  found = toy.search(limits, beam_size, kind, alpha, n_best=beam_size, slots=slots)
  assert_equals_reference(found, toy, limits, beam_size, kind, alpha)


def test_a_large_vocabulary_equals_plain_beam_search():
  limits = [5, 3, 7]
  toy = Toy(seed=6, sentences=3, eos_bonus=3.0, states=29, vocab=1009)
  found = toy.search(limits, beam_size=3, n_best=3, slots=2)
  assert_equals_reference(found, toy, limits, beam_size=3)


@pytest.mark.parametrize("slots", [None, 3, *long((2, 23))])
def test_one_hypothesis_is_greedy(slots):
  limits = [19] * 23
  toy = Toy(seed=0, sentences=len(limits), eos_bonus=1.0)
  found = toy.search(limits, beam_size=1, slots=slots)
  for sentence, limit in enumerate(limits):
    tokens = []
    while EOS not in tokens:
      next_log_probs = toy.log_probs(sentence, tokens).copy()
      next_log_probs[[PAD, BOS]] = -math.inf
      tokens.append(EOS if len(tokens) == limit - 1 else int(next_log_probs.argmax()))
    assert sequences(found, sentence) == [tuple(tokens)]


@pytest.mark.parametrize("slots", [3, *long((1, 2, 5, 7))])
def test_slots_neighbours_and_order_change_nothing_to_the_last_bit(slots):
  """The reference is the plain search of all sentences together."""
  limits = [13, 3, 29, 1, 7]
  toy = Toy(seed=1, sentences=5)
  together = toy.search(limits, beam_size=3, n_best=3)
  for kept, order in [(5, range(5)), (5, [3, 0, 4, 2, 1]), (5, [2, 1, 0, 4, 3]), (3, [4, 3, 2, 1, 0]), (1, [1])]:
    own_limits = [limits[i] if place < kept else 0 for place, i in enumerate(order)]
    found = toy.of(order).search(own_limits, beam_size=3, n_best=3, max_length=29, slots=slots)
    for place, i in enumerate(order):
      if place < kept:
        assert_same_bits(found, place, together, i)
      else:
        assert (found.lengths[place] == 0).all()


@pytest.mark.parametrize("slots", [3, *long((2, 4))])
def test_every_hypothesis_is_complete_and_within_its_limit(slots):
  limits = [1, 2, 5, 11]
  found = Toy(seed=2, sentences=4, eos_bonus=-9.0).search(limits, beam_size=3, n_best=3, slots=slots)
  for sentence, limit in enumerate(limits):
    for rank, tokens in enumerate(sequences(found, sentence)):
      if limit == 1 and rank > 0:
        assert tokens == () and found.scores[sentence, rank] == -math.inf
        continue
      assert 1 <= len(tokens) <= limit
      assert tokens.index(EOS) == len(tokens) - 1
      assert not {PAD, BOS} & set(tokens)
      assert set(found.tokens[sentence, rank, len(tokens) :].tolist()) <= {PAD}


@pytest.mark.parametrize("slots", [3, *long((2, 11))])
def test_best_come_first_and_differ(slots):
  found = Toy(seed=5, sentences=11).search([9] * 11, beam_size=5, n_best=5, slots=slots)
  assert (np.diff(found.scores, axis=1) <= 0).all()
  for sentence in range(11):
    assert len(set(sequences(found, sentence))) == 5


@pytest.mark.parametrize(
  ("beam_size", "patience", "slots"),
  [pytest.param(1, 0.0, 2, marks=pytest.mark.long), pytest.param(3, 0.0, 2, marks=pytest.mark.long), (3, 1.0, 3)],
)
def test_a_sentence_without_enough_room_is_truncated_and_the_others_are_as_with_more(beam_size, patience, slots):
  limits, room = [17, 5, 13, 11, 17], 7
  toy = Toy(seed=1, sentences=len(limits), eos_bonus=-1.0)
  steps = [[] for _ in limits]
  for sentence, limit in enumerate(limits):
    toy.of([sentence]).search([limit], beam_size, patience=patience, max_length=max(limits), steps=steps[sentence])
  too_long = [len(taken) > room for taken in steps]
  assert 0 < sum(too_long) < len(limits)
  expected = toy.search(limits, beam_size, patience=patience, slots=slots)
  found = toy.search(limits, beam_size, patience=patience, slots=slots, max_length=room)
  for sentence, truncated in enumerate(too_long):
    if truncated:
      assert (found.lengths[sentence] == TRUNCATED).all()
    else:
      assert (expected.tokens[sentence, :, room:] == PAD).all()
      shorter = expected._replace(tokens=expected.tokens[:, :, :room])
      assert_same_bits(found, sentence, shorter, sentence)


@pytest.mark.parametrize("slots", [None, 2, *long((1, 3))])
def test_a_row_without_limit_costs_nothing_and_has_no_hypothesis(slots):
  steps = []
  found = Toy(seed=4, sentences=3).search([0, 0, 0], beam_size=2, max_length=3, slots=slots, steps=steps)
  assert (found.tokens == PAD).all()
  assert (found.lengths == 0).all()
  assert (found.scores == -math.inf).all()
  assert steps == []


def test_ends_as_soon_as_no_unfinished_hypothesis_can_win():
  """After "EOS" with probability 0.9 at once, nothing else can be better: one step is enough."""
  probabilities = np.full(VOCAB, 0.1 / (VOCAB - 1), np.float32)
  probabilities[EOS] = 0.9
  toy, steps = Toy(seed=0, sentences=2), []
  toy.table[:] = np.log(probabilities)
  found = toy.search([50, 50], beam_size=4, steps=steps)
  assert sequences(found, 0) == [(EOS,)]
  assert len(steps) == 1


def test_a_slot_is_free_for_the_next_sentence_at_once():
  """No EOS before the limit: each sentence takes as many steps as its limit says."""
  limits, slots = [29, 2, 3, 2, 23, 5], 2
  toy, steps = Toy(seed=7, sentences=len(limits), eos_bonus=-99.0), []
  found = toy.search(limits, beam_size=3, slots=slots, steps=steps)
  assert found.lengths[:, 0].tolist() == limits
  first, second = zip(*steps, strict=True)
  assert list(first) == [*range(29), *range(5)]
  assert list(second)[: 2 + 3 + 2 + 23] == [*range(2), *range(3), *range(2), *range(23)]
  in_batches = []
  for i in range(0, len(limits), slots):
    toy.of([i, i + 1]).search(limits[i : i + slots], beam_size=3, max_length=max(limits), steps=in_batches)
  assert len(steps) == 29 + 5 < len(in_batches) == 29 + 3 + 23


@pytest.mark.parametrize("slots", [None, 2, pytest.param(6, marks=pytest.mark.long)])
@pytest.mark.parametrize("beam_size", [2, 3, pytest.param(5, marks=pytest.mark.long)])
@pytest.mark.parametrize("patience", [1e-46, 0.5, 1.0, 2.0])
def test_patience_ends_a_sentence_when_so_many_hypotheses_have_finished(patience, beam_size, slots):
  limits = [17, 11, 13, 7, 5, 2]
  toy = Toy(seed=beam_size, sentences=len(limits))
  found = toy.search(limits, beam_size, n_best=beam_size, slots=slots, patience=patience)
  assert_equals_reference(found, toy, limits, beam_size, patience=patience)


def test_little_patience_takes_fewer_steps_and_much_changes_nothing():
  limits = [17, 11, 13, 7, 5, 2]
  toy, steps = Toy(seed=5, sentences=len(limits)), {}
  found = {
    patience: toy.search(limits, 5, n_best=5, slots=2, patience=patience, steps=steps.setdefault(patience, []))
    for patience in (0.0, 1.0, 99.0)
  }
  assert len(steps[1.0]) < len(steps[0.0]) == len(steps[99.0])
  for sentence in range(len(limits)):
    assert_same_bits(found[99.0], sentence, found[0.0], sentence)
  assert (found[1.0].scores[:, 0] <= found[0.0].scores[:, 0]).all()
  assert (found[1.0].scores < found[0.0].scores).any()


def test_a_large_vocabulary_is_not_sorted():
  """XLA takes the best without sorting only where it recognises its own pattern, and says nothing where it does not."""
  options = SearchOptions(5, LengthPenalty.FAIRSEQ, 1.0)

  def search(table):
    def step(cache, positions, parents, tokens):
      return jnp.broadcast_to(table, (*tokens.shape, len(table))), cache

    limits = jnp.array([7, 7, 7])
    return continuous_batching.search(step, lambda cache, slot, sentence: cache, (), limits, 2, 7, options)

  program = jax.jit(search).lower(jnp.zeros(9973)).compile().as_text()
  assert "TopK" in program
  sorts = [line.split(" sort(")[0] for line in program.split("\n") if " sort(" in line]
  # Of the chosen blocks only, whose numbers are integers: XLA's own pattern is for floating point.
  assert all(int(size) <= options.beam_size for line in sorts for size in re.findall(r"\[(?:\d+,)*(\d+)\]", line))


@pytest.mark.parametrize("length", [1, 2, 7, 50])
def test_penalties(length):
  assert length_penalty(LengthPenalty.GNMT, 0.6, float(length)) == pytest.approx(((5 + length) / 6) ** 0.6)
  assert length_penalty(LengthPenalty.FAIRSEQ, 0.6, float(length)) == pytest.approx(length**0.6)
  assert length_penalty(LengthPenalty.GNMT, 0.0, float(length)) == 1
