"""Packing of several sentence pairs into one fixed-length row; segments tell them apart.

A row has a source side and a target side of `row_length` tokens each. The k-th
pair's tokens have segment k, from 1, on both sides; padding has segment 0. Masks
keep the pairs from attending to each other, so that a packed pair has the same
logits and the same loss as alone.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.tokenizer import EOS, Tokenizer
from transformer_jax.runtime.wording import counted

# The four arrays of a row in their order: `rows[row, SOURCE]` is `[row_length]`.
SOURCE, SOURCE_SEGMENTS, TARGET, TARGET_SEGMENTS = range(4)
PARTS = 4
INPUTS = 4  # a fifth array, the decoder's input; an update adds it if it is not the target, shifted

# Pairs that are placed together. Larger windows pack no better, smaller ones worse.
WINDOW = 8192
# Characters that are encoded together; each line counts as 1,024 more.
AT_ONCE = WINDOW * 1024
# Characters of a too long sentence that are encoded, to report its length.
_CHARACTERS = 1 << 16

Item = TypeVar("Item")
Pair = tuple[Sequence[int], Sequence[int]]


# (a sentence, the place of its pair in the corpus, 0 for a source or 1 for a target) -> its tokens, without EOS.
SamplePieces = Callable[[str, int, int], Sequence[int]]


def encode_pairs(
  sentences: Iterable[tuple[str, str]], tokenizer: Tokenizer, longest: int, report: PackingReport
) -> Iterator[Pair]:
  """The token sequences of sentence pairs, each with an EOS.

  Two kinds of pairs are left out: those with a side of more than `longest`
  tokens, and those with a side that is empty or only spaces.

  Args:
    sentences: the source and target sentences.
    tokenizer: the tokenizer, or those of the two sides.
    longest: the most tokens of either side, EOS included.
    report: gets the counts; the counts of pairs left out are complete after the last pair. The length that it reports
      for the longest sentence counts the tokens of at least its first 65,536 characters.
  """
  report.sides, report.found = 2, dict.fromkeys(("pairs", "source tokens", "target tokens"), 0)
  too_long = empty = longest_seen = 0
  # No token spells more characters, so a sentence that is cut here is still too long.
  most = max(_CHARACTERS, *(longest * side.longest_piece for side in (tokenizer.source, tokenizer.target)))
  cut = (tuple(side[:most] if side.strip() else "" for side in pair) for pair in sentences)
  for batch in gathered(cut, AT_ONCE, lambda pair: 1024 + len(pair[0]) + len(pair[1])):
    sources = tokenizer.source.encode_batch([source for source, _ in batch])
    targets = tokenizer.target.encode_batch([target for _, target in batch])
    for source, target in zip(sources, targets, strict=True):
      if not source or not target:
        empty += 1
        continue
      longest_seen = max(longest_seen, len(source) + 1, len(target) + 1)
      if max(len(source), len(target)) + 1 > longest:
        too_long += 1
        continue
      report.tokens += len(source) + len(target) + 2
      report.found["pairs"] += 1
      report.found["source tokens"] += len(source) + 1
      report.found["target tokens"] += len(target) + 1
      yield [*source, EOS], [*target, EOS]
  report.left_out = {
    f"pairs skipped, longer than {counted(longest, 'tokens')} (the longest has {longest_seen:,})": too_long,
    "pairs skipped, with an empty side": empty,
  }


def sample_pairs(
  sentences: Iterable[tuple[str, str]], tokenizer: Tokenizer, longest: int, report: PackingReport, sample: SamplePieces
) -> Iterator[Pair]:
  """The token sequences of sentence pairs with random pieces, each with an EOS.

  A side whose random pieces are more than `longest` has those of the tokenizer. So the pairs of `encode_pairs` are
  here, too, except that random pieces may fit if the tokenizer's do not.

  Args:
    sentences: the source and target sentences.
    tokenizer: the tokenizer, or those of the two sides.
    longest: the most tokens of either side, EOS included.
    report: gets the counts of what is found.
    sample: gives the random pieces.
  """
  report.sides, report.found = 2, dict.fromkeys(("pairs", "source tokens", "target tokens"), 0)
  for number, texts in enumerate(sentences):
    if not all(text.strip() for text in texts):
      continue
    pair = [
      [*_fitting(text, side, longest, functools.partial(sample, text, number, place)), EOS]
      for place, (text, side) in enumerate(zip(texts, (tokenizer.source, tokenizer.target), strict=True))
    ]
    source, target = map(len, pair)
    if max(source, target) > longest:
      continue
    report.tokens += source + target
    report.found["pairs"] += 1
    report.found["source tokens"] += source
    report.found["target tokens"] += target
    yield pair[0], pair[1]


def _fitting(text: str, tokenizer: Tokenizer, longest: int, sample: Callable[[], Sequence[int]]) -> Sequence[int]:
  """The random tokens of a text if they fit with their EOS, else those of the tokenizer."""
  most = longest * tokenizer.longest_piece
  if len(text) > most:  # no token spells more characters, so neither fits
    return tokenizer.encode(text[: most + 1])
  sampled = sample()
  return sampled if len(sampled) < longest else tokenizer.encode(text)


def pack(pairs: Iterable[Pair], row_length: int, dtype: type = np.int32) -> Iterator[np.ndarray]:
  """Packs pairs into rows by best fit decreasing: in each window the longest pair first, into the fullest row it fits.

  Args:
    pairs: pairs of at most `row_length` tokens on each side.
    row_length: the tokens of each side of a row.
    dtype: the type of the rows.

  Yields:
    Rows `[rows, 4, row_length]`, one window at a time.
  """
  for window in gathered(pairs, WINDOW):
    lengths = np.array([(len(source), len(target)) for source, target in window])
    order = np.argsort(-lengths.max(axis=1), kind="stable")
    row_of = np.empty(len(window), np.int64)
    free = np.full((len(window), 2), row_length)  # tokens left in each row, on each side
    used = 0
    for i in order:
      left = free[: used + 1] - lengths[i]  # the last row is a new one
      fits = left.min(axis=1) >= 0
      row = int(np.argmin(np.where(fits, left.sum(axis=1), 4 * row_length)))
      free[row] = left[row]
      row_of[i] = row
      used = max(used, row + 1)
    yield _fill(window, row_of, used, row_length, dtype)


def _fill(window: list[Pair], row_of: np.ndarray, rows: int, row_length: int, dtype: type) -> np.ndarray:
  packed = np.zeros((rows, PARTS, row_length), dtype)
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


def gathered(items: Iterable[Item], size: int, weight: Callable[[Item], int] = lambda item: 1) -> Iterator[list[Item]]:
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
