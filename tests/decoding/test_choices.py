"""Forced and drawn tokens: searches against exhaustive ones, frequencies against probabilities."""

import collections
import itertools

import numpy as np
import pytest

from tests.decoding.toy import BOS, EOS, PAD, UNK, VOCAB, Toy, exhaustive, sequences
from transformer_jax.config import LengthPenalty
from transformer_jax.decoding.sampling import SamplingOptions

DRAWS = 4001
SUPPRESSED = (PAD, UNK, BOS)
DRAWN = SamplingOptions(suppressed=SUPPRESSED)


@pytest.mark.parametrize("options", [DRAWN, SamplingOptions(temperature=0.6, top_k=3, suppressed=SUPPRESSED)])
def test_drawn_outputs_are_as_frequent_as_they_are_probable(options):
  toy, limit = Toy(3, 1), 3
  many = toy.of([0] * DRAWS)
  numbers = np.stack([np.full(DRAWS, 11), np.arange(DRAWS)], axis=1).astype(np.uint32)
  found = many.search([limit] * DRAWS, 1, slots=13, choices=(None, numbers), sampling=options)
  counts = collections.Counter(sequences(found, i)[0] for i in range(DRAWS))
  expected = dict(_outputs(toy, limit, options))
  assert sum(expected.values()) == pytest.approx(1) and set(counts) <= set(expected)
  for tokens, probability in expected.items():
    deviation = (probability * (1 - probability) / DRAWS) ** 0.5
    assert counts[tokens] / DRAWS == pytest.approx(probability, abs=5 * deviation + 1e-9)
  for i in range(0, DRAWS, 401):  # log P is the model's, whatever the options are
    assert found.log_probs[i, 0] == pytest.approx(toy.log_prob(0, sequences(found, i)[0]), abs=1e-5)


def _outputs(toy, limit, options, tokens=(), probability=1.0):
  """Each output with its probability to be drawn."""
  if tokens[-1:] == (EOS,):
    yield tokens, probability
    return
  weights = np.exp(toy.log_probs(0, tokens).astype(float) / options.temperature)
  weights[[PAD, UNK, BOS]] = 0
  if options.top_k:
    weights[np.argsort(-weights)[options.top_k :]] = 0
  if len(tokens) + 1 == limit:
    weights = np.eye(VOCAB)[EOS]
  for token in np.flatnonzero(weights):
    yield from _outputs(toy, limit, options, (*tokens, int(token)), probability * weights[token] / weights.sum())


def test_a_draw_depends_on_its_numbers_alone():
  toy = Toy(4, 7)
  numbers = np.array([[9, i] for i in range(7)], np.uint32)
  found = toy.search([9] * 7, 1, slots=3, choices=(None, numbers), sampling=DRAWN)
  order = [4, 2, 6, 0, 5, 1, 3]
  other = toy.of(order).search([9] * 7, 1, slots=3, choices=(None, numbers[order]), sampling=DRAWN)
  for place, i in enumerate(order):
    assert sequences(other, place) == sequences(found, i)
    assert other.log_probs[place, 0] == found.log_probs[i, 0]
  other_seed = (numbers + np.array([1, 0])).astype(np.uint32)
  again = toy.search([9] * 7, 1, slots=3, choices=(None, other_seed), sampling=DRAWN)
  assert [sequences(again, i) for i in range(7)] != [sequences(found, i) for i in range(7)]


PREFIXES = [(), (4,), (6, UNK), (5, 5, 4), (4, 6)]


def test_a_forced_beginning_is_the_best_of_all_outputs_that_begin_so():
  toy, limits = Toy(8, len(PREFIXES)), [4, 3, 4, 4, 3]
  forced = np.zeros((len(PREFIXES), 4), np.int32)
  for row, prefix in zip(forced, PREFIXES, strict=True):
    row[: len(prefix)] = prefix
  wide = 5 * 5 * 5
  found = toy.search(limits, wide, n_best=3, slots=2, max_length=4, choices=(forced, None))
  for i, (prefix, limit) in enumerate(zip(PREFIXES, limits, strict=True)):
    every = exhaustive(toy, i, limit, LengthPenalty.GNMT, 0.6)
    expected = [(score, tokens) for score, tokens in every if tuple(tokens[: len(prefix)]) == prefix][:3]
    count = min(3, len(expected))
    assert sequences(found, i)[:count] == [tuple(tokens) for _, tokens in expected]
    np.testing.assert_allclose(found.scores[i, :count], [score for score, _ in expected], rtol=1e-5)
    assert np.all(found.lengths[i, count:] == 0)


def test_a_beginning_may_be_forced_and_the_rest_drawn():
  toy = Toy(2, 11)
  forced = np.tile(np.array([[6, 4, PAD, PAD, PAD]], np.int32), (11, 1))
  numbers = np.array([[1, i] for i in range(11)], np.uint32)
  found = toy.search([5] * 11, 1, slots=4, choices=(forced, numbers), sampling=DRAWN)
  outputs = [sequences(found, i)[0] for i in range(11)]
  assert {tokens[:2] for tokens in outputs} == {(6, 4)} and len(set(outputs)) > 3
  for i, tokens in enumerate(outputs):
    assert found.log_probs[i, 0] == pytest.approx(toy.log_prob(i, tokens), abs=1e-5)


def test_a_prefix_without_room_is_truncated():
  toy = Toy(5, 2)
  forced = np.array([[4, 5, 6], [PAD, PAD, PAD]], np.int32)  # of the first, more is to come
  found = toy.search([7, 2], 2, slots=2, max_length=3, choices=(forced, None))
  assert found.lengths[0].tolist() == [-1] and found.lengths[1, 0] > 0
  assert list(itertools.chain(*sequences(found, 1)))[-1] == EOS
