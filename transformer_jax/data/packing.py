"""Several sentence pairs in one fixed-length row, told apart by segments.

A row has a source side and a target side of `row_length` tokens each. The
pairs in it are numbered from 1: the k-th pair's tokens have segment k on both
sides, padding has segment 0. Masks keep the pairs from seeing each other, so
that a packed pair has the logits and the loss it would have alone.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transformer_jax.data.tokenizer import EOS, Tokenizer

# What the four arrays of a row are, in this order: `rows[row, SOURCE]` is `[row_length]`.
SOURCE, SOURCE_SEGMENTS, TARGET, TARGET_SEGMENTS = range(4)

# Pairs that are placed together. Larger windows pack no better, smaller ones worse.
WINDOW = 8192
# Characters that are encoded together, where a line counts as 1,024 more.
AT_ONCE = WINDOW * 1024
# Characters of a sentence that are looked at to count the tokens of one that is too long.
_CHARACTERS = 1 << 16

Pair = tuple[Sequence[int], Sequence[int]]


@dataclass
class PackingReport:
  """What became of the corpus; `tokens` are real ones, both sides, with EOS.

  The longest sentence has that many tokens in its first 65,536 characters.
  """

  pairs: int = 0
  too_long: int = 0
  empty: int = 0
  rows: int = 0
  source_tokens: int = 0
  target_tokens: int = 0
  longest_source: int = 0
  longest_target: int = 0

  def padding(self, row_length: int) -> float:
    """The share of positions, of both sides, that hold no token."""
    return 1 - (self.source_tokens + self.target_tokens) / max(1, 2 * self.rows * row_length)

  @property
  def size(self) -> str:
    return f"{self.pairs:,} pairs"

  def describe(self, row_length: int, longest: int) -> str:
    """What training is on."""
    return (
      f"{self.size}, {self.source_tokens:,} source and {self.target_tokens:,} target tokens, "
      f"in {self.rows:,} rows of {row_length}, {self.padding(row_length):.1%} padding{self.left_out(longest)}"
    )

  def left_out(self, longest: int) -> str:
    """What was skipped, as the end of a sentence; empty if nothing was."""
    text = ""
    if self.too_long:
      text += f"; {self.too_long:,} pairs skipped, longer than {longest} tokens"
      text += f" (longest: {max(self.longest_source, self.longest_target):,})"
    if self.empty:
      text += f"; {self.empty:,} pairs skipped, with an empty side"
    return text


def encode_pairs(
  sentences: Iterable[tuple[str, str]], tokenizer: Tokenizer, longest: int, report: PackingReport
) -> Iterator[Pair]:
  """Token sequences with their EOS; counts in `report` what is left out.

  Args:
    sentences: source and target sentences.
    tokenizer: of both.
    longest: most tokens of either side, EOS included; longer pairs are counted
      as `too_long`, pairs with an empty side, or one of spaces alone, as `empty`.
    report: is updated.
  """
  # No piece spells more characters, so that what is cut here is too long all the same.
  most = max(_CHARACTERS, longest * tokenizer.longest_piece)
  cut = (tuple(side[:most] if side.strip() else "" for side in pair) for pair in sentences)
  for batch in gathered(cut, AT_ONCE, lambda pair: 1024 + len(pair[0]) + len(pair[1])):
    sources = tokenizer.encode_batch([source for source, _ in batch])
    targets = tokenizer.encode_batch([target for _, target in batch])
    for source, target in zip(sources, targets, strict=True):
      if not source or not target:
        report.empty += 1
        continue
      report.longest_source = max(report.longest_source, len(source) + 1)
      report.longest_target = max(report.longest_target, len(target) + 1)
      if max(len(source), len(target)) + 1 > longest:
        report.too_long += 1
        continue
      report.pairs += 1
      report.source_tokens += len(source) + 1
      report.target_tokens += len(target) + 1
      yield [*source, EOS], [*target, EOS]


def pack(pairs: Iterable[Pair], row_length: int, dtype: type = np.int32) -> Iterator[np.ndarray]:
  """Best fit decreasing within a window: the longest pair first, into the fullest row that takes it.

  Args:
    pairs: token sequences of at most `row_length` tokens.
    row_length: of each side.
    dtype: of the rows.

  Yields:
    `[rows, 4, row_length]`, a window at a time.
  """
  for window in gathered(pairs, WINDOW):
    lengths = np.array([(len(source), len(target)) for source, target in window])
    order = np.argsort(-lengths.max(axis=1), kind="stable")
    row_of = np.empty(len(window), np.int64)
    free = np.full((len(window), 2), row_length)  # tokens left in each row, on each side
    used = 0
    for i in order:
      left = free[: used + 1] - lengths[i]  # the last one is a new row
      fits = left.min(axis=1) >= 0
      row = int(np.argmin(np.where(fits, left.sum(axis=1), 4 * row_length)))
      free[row] = left[row]
      row_of[i] = row
      used = max(used, row + 1)
    yield _fill(window, row_of, used, row_length, dtype)


def _fill(window: list[Pair], row_of: np.ndarray, rows: int, row_length: int, dtype: type) -> np.ndarray:
  packed = np.zeros((rows, 4, row_length), dtype)
  filled = np.zeros((rows, 2), np.int64)
  segments = np.zeros(rows, np.int64)
  for pair, row in zip(window, row_of, strict=True):
    segments[row] += 1
    for side, tokens in enumerate(pair):
      start, end = filled[row, side], filled[row, side] + len(tokens)
      packed[row, 2 * side, start:end] = tokens
      packed[row, 2 * side + 1, start:end] = segments[row]
      filled[row, side] = end
  return packed


def gathered(items: Iterable, size: int, weight: Callable[[Any], int] = lambda item: 1) -> Iterator[list]:
  """Lists of items that weigh `size` together, or a little more."""
  batch, left = [], size
  for item in items:
    batch.append(item)
    left -= weight(item)
    if left <= 0:
      yield batch
      batch, left = [], size
  if batch:
    yield batch
