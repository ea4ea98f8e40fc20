"""Subword regularisation: random pieces of a word from a unigram language model (Kudo 2018).

    P(x) is proportional to p(x_1)^alpha ... p(x_n)^alpha      for every way x to split the word into pieces

This is Kudo's sampling from all splits (l = infinity), by forward filtering and backward sampling. Here the filtering
goes from the end of the word, so that the pieces are drawn from the beginning:

    beta(i) = sum over the pieces from i to j of p(piece)^alpha beta(j)      beta(end) = 1
    P(the piece from i to j | a piece starts at i) = p(piece)^alpha beta(j) / beta(i)
"""

import math
from bisect import bisect_right
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from transformer_jax.data.sentencepiece_pieces import Pieces

# A longer word rarely occurs twice, so nothing of it is kept.
_LONGEST_KEPT = 32


class _Next(NamedTuple):
  """The pieces that can start at one place of a word."""

  bounds: list[float]  # the sums of their probabilities
  ends: list[int]
  ids: list[list[int]]


class UnigramSampling:
  """Random pieces of words.

  Args:
    pieces: the pieces of a unigram vocabulary; a piece's score is the logarithm of its probability. A character that is
      no piece is spelled in bytes and has the score that SentencePiece gives it.
    alpha: 1 samples from the model, 0 takes all splits for equally likely, a large alpha prefers the most likely one.

  Attributes:
    kept: the words that are kept in memory, with what can start at each place of them.
  """

  def __init__(self, pieces: Pieces, alpha: float):
    self._pieces, self._alpha, self._unknown_score = pieces, alpha, pieces.unknown_score
    self.kept: dict[str, list[_Next]] = {}

  def draws(self, numbers: np.ndarray) -> list[float]:
    """A random number in [0, 1) for each uniform uint64."""
    return ((numbers >> 11) * 2.0**-53).tolist()

  def sample(self, word: str, draws: list[float], at: int) -> list[int]:
    """The numbers of a word's pieces.

    Args:
      word: the word.
      draws: random numbers in [0, 1).
      at: the place in `draws` of the first number for this word; a word of n characters takes at most n of them.
    """
    places = self.kept.get(word)
    if places is None:
      places = self._places(word)
      if len(word) <= _LONGEST_KEPT:
        self.kept[word] = places
    found: list[int] = []
    place = 0
    while place < len(word):
      bounds, ends, ids = places[place]
      chosen = bisect_right(bounds, draws[at], hi=len(bounds) - 1)  # rounding may leave the last bound below 1
      found += ids[chosen]
      place, at = ends[chosen], at + 1
    return found

  def _places(self, word: str) -> list[_Next]:
    """What can start at each place of the word."""
    beta = [0.0] * (len(word) + 1)  # its logarithm
    places: list[_Next] = []
    for start in range(len(word) - 1, -1, -1):
      pieces = self._starting(word, start)
      weights = [self._alpha * score + beta[end] for end, score in pieces]
      highest = max(weights)
      beta[start] = highest + math.log(math.fsum(math.exp(weight - highest) for weight in weights))
      bounds = list(accumulate(math.exp(weight - beta[start]) for weight in weights))
      ends = [end for end, _ in pieces]
      places.append(_Next(bounds, ends, [self._pieces.numbers([word[start:end]]) for end in ends]))
    return places[::-1]

  def _starting(self, word: str, start: int) -> list[tuple[int, float]]:
    """The end and the score of each piece that can start here."""
    scores = self._pieces.scores
    ends = range(start + 1, min(len(word), start + self._pieces.longest) + 1)
    found = [(end, score) for end in ends if (score := scores.get(word[start:end])) is not None]
    if not found or found[0][0] > start + 1:
      found.append((start + 1, self._unknown_score))
    return found
