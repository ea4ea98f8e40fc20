"""BPE-dropout: a word's pieces from random merges (Provilkov et al. 2020).

Byte-pair encoding merges two neighbouring pieces of a word at a time, always those whose merged piece has the highest
priority, until nothing is left to merge. BPE-dropout first drops each possible merge with probability p, anew in each
step (Algorithm 1). It ends when every possible merge was dropped.

The merge of a step is the one that survives with the highest priority. Its rank is the number of merges of higher
priority, which were all dropped: P(rank >= r) = p^r. So a step needs one random number, whatever the number of possible
merges, and the ranks of a word's steps determine its pieces. Most ranks are 0, so most words occur with the same ranks
again, and their pieces are kept.
"""

from bisect import bisect_left

import numpy as np

from transformer_jax.data.piece_list import Pieces

_LONGEST_KEPT = 32  # a longer word rarely occurs twice with the same ranks
_RANK = np.uint16
_BYTES = 2  # of a rank
_SMALLEST = 2.0**-53  # a uniform random number below it is 0


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
    powers = [p]
    while powers[-1] >= _SMALLEST:
      powers.append(powers[-1] * p)
    self._powers = -np.array(powers)  # in ascending order, as `searchsorted` needs it
    self.kept: dict[tuple[str, bytes], list[int]] = {}

  def draws(self, uniforms: np.ndarray) -> bytes:
    """The rank for each random number in [0, 1)."""
    return np.searchsorted(self._powers, -uniforms).astype(_RANK).tobytes()

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
    starts = list(range(len(word)))  # of the pieces
    merges = sorted(self._possible(word, starts, range(len(word) - 1)))
    for rank in ranks:
      if rank >= len(merges):
        break
      _, place = merges[rank]
      i = bisect_left(starts, place)
      gone = starts[max(0, i - 1) : i + 2]  # the merges of these pieces are others now
      del starts[i + 1]
      new = self._possible(word, starts, [j for j in (i - 1, i) if 0 <= j < len(starts) - 1])
      merges = sorted([merge for merge in merges if merge[1] not in gone] + new)
    return self._pieces.numbers(word[a:b] for a, b in zip(starts, [*starts[1:], len(word)], strict=True))

  def _possible(self, word: str, starts: list[int], which: range | list[int]) -> list[tuple[float, int]]:
    """The merges of the pieces `which` with the piece behind each: minus the score, and where the merged piece starts.

    So the highest priority comes first in ascending order, and of equal ones that on the left.
    """
    scores, found = self._pieces.scores, []
    for i in which:
      end = starts[i + 2] if i + 2 < len(starts) else len(word)
      score = scores.get(word[starts[i] : end])
      if score is not None:
        found.append((-score, starts[i]))
    return found
