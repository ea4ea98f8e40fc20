"""Fixed shapes for sentences of all lengths.

A sentence goes into the smallest bucket that holds it, and each bucket is
computed in one shape, whatever its number of sentences: so there is one
compilation a bucket, and a sentence's result does not depend on its neighbours.

A step of a search takes longer the more places there are for the output, used or
not, and few outputs are much longer than their input. So a bucket may have `room` for
these alone; a sentence that needs more is searched for again in a larger one.
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


def room(length: int, longest: int, extra: int) -> int:
  """Places that a bucket has for an output beyond the bucket's length, of `extra` that it may have: all in the last."""
  return extra if length == buckets(longest)[-1] else min(extra, max(_SMALLEST, length // 2))


def larger(length: int, longest: int, extra: int) -> int:
  """The smallest bucket with room for any output of a sentence of this length."""
  return next(b for b in buckets(longest) if b + room(b, longest, extra) >= length + extra)


def batches(
  lengths: Sequence[int], longest: int, slots: Callable[[int], int], *, queue: int = 1, at_a_time: int = 1
) -> Iterator[Batch]:
  """Sentences of these lengths, sorted into batches.

  Args:
    lengths: of each sentence, none above the last bucket.
    longest: what the buckets go up to.
    slots: sentences computed side by side, by their bucket.
    queue: how many times as many a batch may have.
    at_a_time: batches that are worked on side by side: where a bucket fills several, they are as many times so many,
      with equally many sentences, equally long.
  """
  # The longest first: what is left for the end, when not all slots and cores have work, is then short.
  order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
  sorted_lengths = [lengths[i] for i in reversed(order)]
  last = 0
  for length, shorter in itertools.pairwise([*reversed(buckets(longest)), 0]):
    first, last = last, len(order) - int(np.searchsorted(sorted_lengths, shorter, side="right"))
    rows = queue * slots(length)
    turns = -(-(last - first) // (rows * at_a_time))
    parts = min(turns * at_a_time, -(-(last - first) // slots(length)))
    for part in range(parts):
      yield Batch(order[first + part : last : parts], rows, length)


def pad(sequences: Sequence[Sequence[int]], rows: int, length: int, padding: int) -> np.ndarray:
  """The sequences as int32 `[rows, length]`, filled up with padding."""
  array = np.full((rows, length), padding, np.int32)
  for row, sequence in zip(array, sequences, strict=False):
    row[: len(sequence)] = sequence
  return array
