"""Fixed shapes for sentences of all lengths.

A sentence goes into the smallest bucket that holds it. Each bucket has one compute shape for any number of sentences.
So there is one compilation for each bucket, and a sentence's result does not depend on its neighbours.

The more tokens an output has room for, used or not, the longer a step of a search takes, and few outputs are much
longer than their input. So a bucket may have little headroom. If it truncates a sentence's output, the sentence is
searched again in a larger bucket.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from transformer_jax.decoding.translation import require_finite
from transformer_jax.runtime import devices

_SMALLEST = 16
# Tokens on one device at a time. On a CPU a step's time grows with any batch. An accelerator would be idle with so few
# tokens. Its limit is memory, so the tokens that an output has room for count, too.
_TOKENS_ON_CPU = 256
_TOKENS = 16384


class Batch(NamedTuple):
  """Sentences that are computed together.

  Attributes:
    members: the indices of the sentences, at most `rows`.
    rows: rows of the compute shape, over all devices.
    length: tokens of a row, which is the bucket's length.
  """

  members: list[int]
  rows: int
  length: int


def rows_at_once(length: int, extra: int) -> int:
  """How many sentences of a bucket suit one device; their outputs may have `extra` more tokens than the bucket."""
  return max(1, _TOKENS_ON_CPU // length if devices.on_cpu() else _TOKENS // (length + extra))


def buckets(longest: int) -> list[int]:
  """The lengths of the buckets: 16, 32, 64, ... and last `longest`; only 16 if `longest` is smaller."""
  lengths = [_SMALLEST]
  while lengths[-1] * 2 < longest:
    lengths.append(lengths[-1] * 2)
  return lengths if longest <= _SMALLEST else [*lengths, longest]


def headroom(length: int, longest: int, extra: int) -> int:
  """The room for an output beyond the bucket's length, in tokens: `extra` in the last bucket, less in the others."""
  return extra if length == buckets(longest)[-1] else min(extra, max(_SMALLEST, length // 2))


def large_enough(length: int, longest: int, extra: int) -> int:
  """The smallest bucket with room for any output of a sentence of this length."""
  return next(b for b in buckets(longest) if b + headroom(b, longest, extra) >= length + extra)


def batches(
  lengths: Sequence[int], longest: int, slots: Callable[[int], int], *, queue: int = 1, concurrency: int = 1
) -> Iterator[Batch]:
  """Sorts sentences into batches.

  Args:
    lengths: the length of each sentence, at most `longest`.
    longest: the length of the last bucket.
    slots: tells for each bucket how many sentences are computed side by side.
    queue: how many times `slots` sentences a batch may have; the others wait in its queue.
    concurrency: batches that run side by side. A bucket that needs several batches is split evenly into a multiple of
      this number, with short and long sentences in each.
  """
  # The longest first: then little work is left when some slots and cores have none.
  order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
  sorted_lengths = [lengths[i] for i in reversed(order)]
  last = 0
  for length, shorter in itertools.pairwise([*reversed(buckets(longest)), 0]):
    first, last = last, len(order) - int(np.searchsorted(sorted_lengths, shorter, side="right"))
    if first == last:
      continue
    rows = queue * slots(length)
    turns = -(-(last - first) // (rows * concurrency))
    parts = min(turns * concurrency, -(-(last - first) // slots(length)))
    for part in range(parts):
      yield Batch(order[first + part : last : parts], rows, length)


def scores(
  lengths: Sequence[int], longest: int, rows: Callable[[int], int], score: Callable[[Batch], np.ndarray]
) -> list[float]:
  """The log-probability of each sentence, bucket by bucket.

  Args:
    lengths, longest: as in `batches`.
    rows: tells for each bucket how many sentences are computed together.
    score: the log-probabilities of a batch's rows; those of padding mean nothing.

  Raises:
    RunError: one is not finite.
  """
  found = [0.0] * len(lengths)
  for batch in batches(lengths, longest, rows):
    for i, log_prob in zip(batch.members, score(batch), strict=False):
      require_finite(math.isfinite(log_prob))
      found[i] = float(log_prob)
  return found


def padded(length: int, multiple: int, most: int | None = None) -> int:
  """The length rounded up to a multiple of `multiple`, so that few lengths are compiled, but at most `most`."""
  rounded = -(-length // multiple) * multiple
  return rounded if most is None else min(rounded, most)


def pad(sequences: Sequence[Sequence[int]], rows: int, length: int, padding: int) -> np.ndarray:
  """The sequences as an int32 array `[rows, length]`, filled up with padding."""
  array = np.full((rows, length), padding, np.int32)
  for row, sequence in zip(array, sequences, strict=False):
    row[: len(sequence)] = sequence
  return array
