"""Interpolated modified Kneser-Ney smoothing (Chen and Goodman 1999) of n-grams, in NumPy.

    P(w | h) = (c(h w) - D(c(h w))) / c(h) + gamma(h) P(w | h'),   h' = h without its first token

In the highest order, c(h w) is the number of occurrences of h w. In a lower order it is the number of different tokens
before h w, which is the idea of Kneser and Ney. D(c) is D_1, D_2 or D_3 for counts of 1, 2 and more, with other values
for each order. gamma(h) is the probability that the discounts leave over. Below the unigrams is the uniform
distribution.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class _Order:
  """The n-grams of one length, as sorted numbers `context * vocabulary + token`; a context is the number of an
  (n-1)-gram, so that an n-gram's place in `grams` is its number for the next order.

  Attributes:
    grams: `[grams]`.
    discounted: `[grams]`, c - D(c).
    total: `[contexts]`, c(h); 0 if no token follows the context.
    left_over: `[contexts]`, gamma(h) c(h).
  """

  grams: np.ndarray
  discounted: np.ndarray
  total: np.ndarray
  left_over: np.ndarray


class KneserNey:
  """The n-gram model of a text.

  Args:
    tokens: `[length]` integers from 0, the training text.
    vocabulary: the number of different tokens; every token gets some probability.
    order: n.
  """

  def __init__(self, tokens: np.ndarray, vocabulary: int, order: int):
    self._vocabulary = vocabulary
    numbers = np.zeros(len(tokens) + 1, np.int64)  # the number of the gram before each place: at first the empty gram
    ranked, contexts = [], 1
    for _ in range(order):
      keys = numbers[:-1] * vocabulary + tokens[-len(numbers) + 1 :]
      grams, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
      ranked.append((grams, contexts, first, inverse, counts))
      numbers, contexts = inverse, len(grams)
    self._orders = []
    for n, (grams, contexts, _, _, counts) in enumerate(ranked):
      if n + 1 < order:
        longer_first, shorter = ranked[n + 1][2], ranked[n][3]
        # Each different longer gram is one token before the shorter gram at its end.
        counts = np.bincount(shorter[longer_first + 1], minlength=len(grams))
      self._orders.append(_smoothed(grams, counts, contexts, vocabulary))

  def probabilities(self, tokens: np.ndarray) -> np.ndarray:
    """The probability of each token of a text given all tokens before it: `[length]` float64."""
    found = np.full(len(tokens), 1 / self._vocabulary)
    before = np.zeros(len(tokens), np.int64)  # the number of the context; -1 where it never occurred
    for order in self._orders:
      known = before >= 0
      known[known] = order.total[before[known]] > 0
      keys = np.where(known, before, 0) * self._vocabulary + tokens
      place = np.minimum(np.searchsorted(order.grams, keys), len(order.grams) - 1)
      seen = known & (order.grams[place] == keys)
      total = np.where(known, order.total[np.where(known, before, 0)], 1)
      left_over = np.where(known, order.left_over[np.where(known, before, 0)], 1)
      found = np.where(seen, order.discounted[place], 0) / total + left_over / total * found
      grams = np.where(seen, place, -1)  # the gram that ends here: the context of the next place's longer gram
      before = np.concatenate([[-1], grams[:-1]])
    return found

  def perplexity(self, tokens: np.ndarray) -> float:
    """The perplexity of a text: exp of the mean of -log P."""
    return float(np.exp(-np.mean(np.log(self.probabilities(tokens)))))


def discounts(counts: np.ndarray) -> np.ndarray:
  """The discounts D for counts of 0, 1, 2, and 3 or more.

  With n_c grams of count c and Y = n_1 / (n_1 + 2 n_2), D_c = c - (c + 1) Y n_(c+1) / n_c. If some n_c is 0, as in a
  very small text, each count gets half of its maximum.
  """
  n = np.bincount(np.minimum(counts, 5), minlength=6).astype(float)
  if np.any(n[1:5] == 0):
    return np.array([0, 0.5, 1.0, 1.5])
  y = n[1] / (n[1] + 2 * n[2])
  return np.array([0, *(c - (c + 1) * y * n[c + 1] / n[c] for c in (1, 2, 3))])


def _smoothed(grams: np.ndarray, counts: np.ndarray, contexts: int, vocabulary: int) -> _Order:
  taken = discounts(counts)[np.minimum(counts, 3)]
  of_context = grams // vocabulary
  return _Order(
    grams,
    counts - taken,
    np.bincount(of_context, counts, contexts),
    np.bincount(of_context, taken, contexts),
  )
