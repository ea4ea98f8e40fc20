"""Fixed shapes for sentences of all lengths.

A sentence goes into the smallest bucket that holds it, and each bucket is
computed in one shape, whatever its number of sentences: so there is one
compilation a bucket, and a sentence's result does not depend on its neighbours.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

_SMALLEST = 16
# Tokens on one device at a time. On a CPU a step's time grows with the batch from the start. An accelerator is idle
# with so few: there memory is what bounds them, and so those that an output has room for count, too.
_TOKENS_ON_CPU = 256
_TOKENS = 16384


class Batch(NamedTuple):
  """Which sentences are computed together.

  Attributes:
    members: their numbers; at most `rows`.
    rows: of the compute shape, over all devices.
    length: of a row, the bucket's.
  """

  members: list[int]
  rows: int
  length: int


def rows_at_once(length: int, extra: int, *, cpu: bool) -> int:
  """Sentences of a bucket that suit one device, whose outputs may have so many extra tokens."""
  return max(1, _TOKENS_ON_CPU // length if cpu else _TOKENS // (length + extra))


def buckets(longest: int) -> list[int]:
  """16, 32, 64, ... and last `longest`, or 16 where that is larger."""
  lengths = [_SMALLEST]
  while lengths[-1] * 2 < longest:
    lengths.append(lengths[-1] * 2)
  return lengths if longest <= _SMALLEST else [*lengths, longest]


def batches(lengths: Sequence[int], longest: int, rows: Callable[[int], int]) -> Iterator[Batch]:
  """Sentences of these lengths, sorted into batches.

  Args:
    lengths: of each sentence, none above the last bucket.
    longest: what the buckets go up to.
    rows: sentences of a batch, by its bucket.
  """
  # The longest first: what is left for the end, when not all slots and cores have work, is then short.
  order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
  sorted_lengths = [lengths[i] for i in reversed(order)]
  last = 0
  for length, shorter in itertools.pairwise([*reversed(buckets(longest)), 0]):
    first, last = last, len(order) - int(np.searchsorted(sorted_lengths, shorter, side="right"))
    for begin in range(first, last, rows(length)):
      yield Batch(order[begin : min(begin + rows(length), last)], rows(length), length)


def pad(sequences: Sequence[Sequence[int]], rows: int, length: int, padding: int) -> np.ndarray:
  """The sequences as int32 `[rows, length]`, filled up with padding."""
  array = np.full((rows, length), padding, np.int32)
  for row, sequence in zip(array, sequences, strict=False):
    row[: len(sequence)] = sequence
  return array
