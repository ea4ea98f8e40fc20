"""BPE-dropout: a word's pieces from random merges (Provilkov et al. 2020).

Byte-pair encoding merges two neighbouring pieces of a word at a time, always those whose merged piece has the highest
priority, until nothing is left to merge. BPE-dropout first drops each possible merge with probability p, anew in each
step (Algorithm 1). It ends when every possible merge was dropped.

The merge of a step is the one that survives with the highest priority. Its rank is the number of merges of higher
priority, which were all dropped: P(rank >= r) = p^r. So a step needs one random number, whatever the number of possible
merges, and the ranks of a word's steps determine its pieces. Most ranks are 0, so most words occur with the same ranks
again, and their pieces are kept.
"""

import itertools
from bisect import bisect_left, insort

import numpy as np

from transformer_jax.data.sentencepiece_pieces import Pieces

_LONGEST_KEPT = 32  # a longer word rarely occurs twice with the same ranks
_RANK = np.uint16
_BYTES = 2  # of a rank

# Minus the score of the merged piece and where it starts. So the highest priority comes first in ascending order, and
# of equal ones that on the left.
Merge = tuple[float, int]


class BpeDropout:
  """Random pieces of words; p = 0 gives those of byte-pair encoding, as SentencePiece has them.

  Args:
    pieces: the pieces of a vocabulary of byte-pair encoding; a piece's score is its priority.
    p: the probability with which a merge is dropped in a step, below 1.

  Attributes:
    kept: the words with their pieces that are kept in memory.
  """

  def __init__(self, pieces: Pieces, p: float):
    self._pieces = pieces
    thresholds = [int(p * 2.0**64)]  # a uniform 64-bit number is below the k-th of them with probability p^k
    while thresholds[-1] and len(thresholds) < np.iinfo(_RANK).max:
      thresholds.append(int(thresholds[-1] * p))
    self._thresholds = np.array(thresholds[::-1], np.uint64)
    self._begun: dict[str, list[Merge]] = {}
    self.kept: dict[tuple[str, bytes], list[int]] = {}

  def draws(self, numbers: np.ndarray) -> bytes:
    """The rank for each uniform uint64."""
    ranks = len(self._thresholds) - self._thresholds.searchsorted(numbers, "right")
    return ranks.astype(_RANK).tobytes()

  def sample(self, word: str, draws: bytes, at: int) -> list[int]:
    """The numbers of a word's pieces.

    Args:
      word: the word.
      draws: ranks.
      at: the place in `draws` of the first rank for this word; a word of n characters takes n - 1 of them.
    """
    ranks = draws[_BYTES * at : _BYTES * (at + len(word) - 1)]
    found = self.kept.get((word, ranks))
    if found is None:
      found = self._split(word, np.frombuffer(ranks, _RANK).tolist())
      if len(word) <= _LONGEST_KEPT:
        self.kept[word, ranks] = found
    return found

  def _split(self, word: str, ranks: list[int]) -> list[int]:
    scores, merges = self._pieces.scores, list(self._first_merges(word))
    found = {start: minus_score for minus_score, start in merges}
    starts = list(range(len(word) + 1))  # of the pieces, and the end of the word
    for rank in ranks:
      if rank >= len(merges):
        break
      place = merges[rank][1]
      i = bisect_left(starts, place)
      before, behind = starts[i - 1] if i else -1, starts.pop(i + 1)
      # The merges of these three pieces are others now.
      for start in (before, place, behind):
        if start in found:
          del merges[bisect_left(merges, (found.pop(start), start))]
      for start, end in ((before, i + 1), (place, i + 2)):
        score = scores.get(word[start : starts[end]]) if start >= 0 and end < len(starts) else None
        if score is not None:
          found[start] = -score
          insort(merges, (-score, start))
    return self._pieces.numbers([word[a:b] for a, b in itertools.pairwise(starts)])

  def _first_merges(self, word: str) -> list[Merge]:
    """The merges of single characters, the highest priority first."""
    found = self._begun.get(word)
    if found is None:
      scores = self._pieces.scores
      pairs = ((scores.get(word[i : i + 2]), i) for i in range(len(word) - 1))
      found = sorted((-score, i) for score, i in pairs if score is not None)
      if len(word) <= _LONGEST_KEPT:
        self._begun[word] = found
    return found
