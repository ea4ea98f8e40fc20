"""Reranking of lists of translations by a weighted sum of features, such as the scores of other models.

The weights are tuned on a validation set: one weight at a time is set to the value with the highest corpus BLEU. Along
one weight the sum of a candidate is a line, so each sentence's best candidate changes at few places, and all values of
the weight are tried exactly (Och 2003). Nothing is random.
"""

import math
from collections.abc import Sequence

import numpy as np

from transformer_jax.evaluation.bleu_statistics import bleu
from transformer_jax.runtime.errors import InputError

_PASSES = 20  # over all weights, at most
_NARROWEST = 1e-9  # relative; where three lines meet, rounding makes two places of one


def best(features: Sequence[np.ndarray], weights: np.ndarray) -> list[int]:
  """The index of the best candidate of each sentence; the first of equal ones.

  Args:
    features: `[candidates, features]` of each sentence, each with one candidate at least.
    weights: `[features]`.

  Raises:
    InputError: a weighted sum is no finite number.
  """
  with np.errstate(over="ignore", invalid="ignore"):
    sums = [each @ weights for each in features]
  if not all(np.isfinite(each).all() for each in sums):
    raise InputError("a sum of the weighted features is too large for a number: give smaller weights")
  return [int(np.argmax(each)) for each in sums]


def tuned(features: Sequence[np.ndarray], statistics: Sequence[np.ndarray]) -> tuple[np.ndarray, float]:
  """The weights with the highest corpus BLEU that the search finds, and this BLEU.

  The search begins with each feature alone in turn, and the best of these searches counts. So BLEU is at least that of
  any feature alone.

  Args:
    features: `[candidates, features]` of each sentence.
    statistics: the counts of each candidate (`evaluation/bleu_statistics.py`), `[candidates, 10]` of each sentence.

  Returns:
    Weights `[features]`, of which the absolute values add up to 1, and BLEU, 0 to 100.
  """
  found = [_ascend(start, features, statistics) for start in np.eye(features[0].shape[1])]
  weights, score = max(found, key=lambda each: each[1])
  return weights / np.abs(weights).sum(), score


def _ascend(
  weights: np.ndarray, features: Sequence[np.ndarray], statistics: Sequence[np.ndarray]
) -> tuple[np.ndarray, float]:
  """Changes one weight after another as long as BLEU rises."""
  score = bleu(np.sum([counts[i] for counts, i in zip(statistics, best(features, weights), strict=True)], axis=0))
  for _ in range(_PASSES):
    before = score
    for k in range(len(weights)):
      others = np.where(np.arange(len(weights)) == k, 0, weights)
      value, found = line_search([each @ others for each in features], [each[:, k] for each in features], statistics)
      if found > score + 1e-9:
        weights, score = others + value * np.eye(len(weights))[k], found
    if score <= before:
      break
  return weights, score


def line_search(
  constants: Sequence[np.ndarray], slopes: Sequence[np.ndarray], statistics: Sequence[np.ndarray]
) -> tuple[float, float]:
  """The value x with the highest corpus BLEU if the candidates' scores are `constants + x * slopes`, and this BLEU.

  Args:
    constants, slopes: `[candidates]` of each sentence.
    statistics: the counts of each candidate, `[candidates, 10]` of each sentence.
  """
  counts, changes = np.zeros_like(statistics[0][0]), []
  for constant, slope, own in zip(constants, slopes, statistics, strict=True):
    first, *rest = envelope(constant, slope)
    counts = counts + own[first[1]]
    changes += [(x, own[new] - own[old]) for (_, old), (x, new) in zip([first, *rest], rest, strict=False)]
  changes.sort(key=lambda change: change[0])
  places = sorted({x for x, _ in changes})
  if not places:
    return 0.0, bleu(counts)
  tried = [(places[0] - 1, bleu(counts))]
  totals: dict[float, np.ndarray] = {}  # from a place to the next
  for x, change in changes:
    totals[x] = counts = counts + change
  pieces = zip(places, [*places[1:], math.inf], strict=True)
  tried += [(_between(x, end), bleu(totals[x])) for x, end in pieces if end - x > _NARROWEST * max(1.0, abs(x))]
  return max(tried, key=lambda each: each[1])


def envelope(constants: np.ndarray, slopes: np.ndarray) -> list[tuple[float, int]]:
  """Which candidate has the highest `constants + x * slopes`, for all x.

  Returns:
    Pairs of x and a candidate, which is the best from there to the next x; the first x is -inf.
  """
  found: list[tuple[float, int]] = []
  for i in sorted(range(len(slopes)), key=lambda i: (slopes[i], constants[i], -i)):
    while found:
      start, last = found[-1]
      # One of the same slope is nowhere better than this one.
      x = float((constants[last] - constants[i]) / (slopes[i] - slopes[last])) if slopes[i] > slopes[last] else start
      if x > start:
        break
      found.pop()
    else:
      x = -math.inf
    found.append((x, i))
  return found


def _between(start: float, end: float) -> float:
  """A point in an interval that may have no end."""
  return start + 1 if end == math.inf else (start + end) / 2
