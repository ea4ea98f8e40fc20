"""Every sentence is in one batch, in the smallest bucket that holds it."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_jax.decoding.buckets import batches, buckets, headroom, large_enough, pad, padded, rows_at_once
from transformer_jax.runtime import devices


@pytest.mark.parametrize(
  ("longest", "lengths"),
  [(2, [16]), (16, [16]), (17, [16, 17]), (64, [16, 32, 64]), (100, [16, 32, 64, 100]), (256, [16, 32, 64, 128, 256])],
)
def test_buckets_double_up_to_the_longest(longest, lengths):
  assert buckets(longest) == lengths


@given(st.lists(st.integers(1, 100), max_size=60), *(st.sampled_from(n) for n in ([1, 3, 7, 50], [1, 2, 5], [1, 2, 3])))
def test_each_sentence_is_in_one_batch_of_its_bucket(lengths, tokens, queue, concurrency):
  def slots(length):
    return 1 + 16 * tokens // length

  found = list(batches(lengths, 100, slots, queue=queue, concurrency=concurrency))
  assert sorted(i for batch in found for i in batch.members) == list(range(len(lengths)))
  for batch in found:
    assert 0 < len(batch.members) <= batch.rows == queue * slots(batch.length)
    for i in batch.members:
      assert batch.length == min(length for length in buckets(100) if length >= lengths[i])
  of_buckets = [(length, list(group)) for length, group in itertools.groupby(found, lambda batch: batch.length)]
  assert [length for length, _ in of_buckets] == sorted({batch.length for batch in found}, reverse=True)
  for length, group in of_buckets:
    counts = [len(batch.members) for batch in group]
    assert max(counts) - min(counts) <= 1
    # All that are worked on side by side have work, but no more of them than can fill their slots.
    assert len(group) % concurrency == 0 or len(group) == -(-sum(counts) // slots(length))
    assert (len(group) - concurrency) * queue * slots(length) < sum(counts)


@given(st.lists(st.integers(1, 100), max_size=60), st.sampled_from([1, 2, 3]))
def test_the_longest_come_first(lengths, concurrency):
  found = list(batches(lengths, 100, lambda length: 7, concurrency=concurrency))
  for batch in found:
    members = [lengths[i] for i in batch.members]
    assert members == sorted(members, reverse=True)


@pytest.mark.parametrize(("longest", "extra"), [(16, 50), (64, 50), (128, 50), (100, 3), (128, 500)])
def test_an_output_has_room_in_its_bucket_or_in_a_larger_one(longest, extra):
  last = buckets(longest)[-1]
  assert headroom(last, longest, extra) == extra
  for length in range(1, longest + 1):
    found = large_enough(length, longest, extra)
    assert found + headroom(found, longest, extra) >= length + extra
    assert all(
      smaller + headroom(smaller, longest, extra) < length + extra for smaller in buckets(longest) if smaller < found
    )


def test_pad():
  expected = np.array([[5, 6, 0], [7, 0, 0], [0, 0, 0]], np.int32)
  found = pad([[5, 6], [7]], rows=3, length=3, padding=0)
  assert found.dtype == expected.dtype
  np.testing.assert_array_equal(found, expected)


def test_few_lengths_are_compiled():
  assert [padded(length, 32) for length in (1, 32, 33, 100)] == [32, 32, 64, 128]
  assert [padded(length, 32, 100) for length in (1, 33, 96, 97, 100)] == [32, 64, 96, 100, 100]


def test_one_sentence_at_least_is_computed_at_once(monkeypatch):
  assert [rows_at_once(length, 50) for length in (16, 256, 257, 10**6)] == [16, 1, 1, 1]
  monkeypatch.setattr(devices, "on_cpu", lambda: False)
  assert rows_at_once(10**6, 5) == 1 and rows_at_once(16, 48) == rows_at_once(64, 0) > 1
