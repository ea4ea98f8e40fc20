"""Kneser-Ney against its definition, count by count, and as a distribution."""

import collections

import numpy as np
import pytest

from benchmarks.ngram import KneserNey, discounts

VOCABULARY = 7


def text(length: int, seed: int = 0) -> np.ndarray:
  """Tokens that depend on the two before them, of the first five of seven."""
  generator = np.random.default_rng(seed)
  tokens = [0, 1]
  for _ in range(length - 2):
    tokens.append(int((tokens[-1] + tokens[-2] + generator.integers(0, 3)) % 5))
  return np.array(tokens)


def by_definition(train: list[int], order: int, history: tuple[int, ...], token: int) -> float:
  """Chen and Goodman's equations with sets and loops."""
  if order == 0:
    return 1 / VOCABULARY
  highest = len(history) + 1 == by_definition.order
  grams = [tuple(train[i : i + order]) for i in range(len(train) - order + 1)]
  if highest:
    counts = collections.Counter(grams)
  else:
    longer = {tuple(train[i : i + order + 1]) for i in range(len(train) - order)}
    counts = collections.Counter(gram[1:] for gram in longer)
  every = np.array([counts[gram] for gram in set(grams)])
  d = discounts(every)
  following = {gram: count for gram, count in counts.items() if gram[:-1] == history}
  total = sum(following.values())
  lower = by_definition(train, order - 1, history[1:], token)
  if total == 0:
    return lower
  here = counts[(*history, token)]
  left_over = sum(d[min(count, 3)] for count in following.values())
  return (here - d[min(here, 3)]) / total + left_over / total * lower


@pytest.mark.parametrize("order", [1, 2, 3])
def test_probabilities_are_those_of_the_definition(order):
  by_definition.order = order
  train, test = text(300), np.concatenate([text(40, seed=1), [6, 2, 6]])
  found = KneserNey(train, VOCABULARY, order).probabilities(test)
  for i in range(order - 1, len(test)):
    expected = by_definition(train.tolist(), order, tuple(test[i - order + 1 : i].tolist()), int(test[i]))
    assert found[i] == pytest.approx(expected, rel=1e-12), i


def test_the_discounts_of_known_counts():
  """n_1 to n_4 = 8, 4, 2, 1: Y = 1/2, D_1 = 1 - 2 Y 4/8, D_2 = 2 - 3 Y 2/4, D_3 = 3 - 4 Y 1/2."""
  counts = np.array([1] * 8 + [2] * 4 + [3] * 2 + [4] + [9])
  np.testing.assert_allclose(discounts(counts), [0, 0.5, 1.25, 2.0])


@pytest.mark.parametrize("history", [[0, 1, 1, 2], [6, 6, 6, 6], [3], [4, 6, 0, 1]])
def test_probabilities_sum_to_1(history):
  model = KneserNey(text(200), VOCABULARY, 4)
  total = sum(model.probabilities(np.array([*history, token]))[-1] for token in range(VOCABULARY))
  assert total == pytest.approx(1, abs=1e-12)


def test_a_bigram_by_hand():
  """a b a b a c: after b came a twice; of the 4 different bigrams ab ba ac, and so on, one third end in each."""
  a, b, c = 0, 1, 2
  model = KneserNey(np.array([a, b, a, b, a, c]), 3, 2)
  # Too few counts for D: 0.5, 1, 1.5. Different tokens before a: {b}, before b: {a}, before c: {a}; each 1 of 3.
  unigram = (1 - 0.5) / 3 + (3 * 0.5) / 3 * (1 / 3)
  assert model.probabilities(np.array([b, a]))[1] == pytest.approx((2 - 1) / 2 + 1 / 2 * unigram)
  # After a: b twice, c once.
  assert model.probabilities(np.array([a, c]))[1] == pytest.approx((1 - 0.5) / 3 + (1 + 0.5) / 3 * unigram)


def test_perplexity_of_a_text_without_order_is_its_alphabet():
  generator = np.random.default_rng(0)
  train, test = generator.integers(0, 5, 20_000), generator.integers(0, 5, 5_000)
  assert KneserNey(train, 5, 1).perplexity(test) == pytest.approx(5, rel=1e-3)
