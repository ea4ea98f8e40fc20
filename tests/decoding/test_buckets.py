"""Every sentence is in one batch, in the smallest bucket that holds it."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_jax.decoding.buckets import batches, buckets, pad


@pytest.mark.parametrize(
  ("longest", "lengths"),
  [(2, [16]), (16, [16]), (17, [16, 17]), (64, [16, 32, 64]), (100, [16, 32, 64, 100]), (256, [16, 32, 64, 128, 256])],
)
def test_buckets_double_up_to_the_longest(longest, lengths):
  assert buckets(longest) == lengths


@given(st.lists(st.integers(1, 100), max_size=60), st.sampled_from([1, 3, 7, 50]))
def test_each_sentence_is_in_one_batch_of_its_bucket(lengths, tokens):
  def rows(length):
    return 1 + 16 * tokens // length

  found = list(batches(lengths, 100, rows))
  assert sorted(i for batch in found for i in batch.members) == list(range(len(lengths)))
  for batch in found:
    assert 0 < len(batch.members) <= batch.rows == rows(batch.length)
    for i in batch.members:
      assert batch.length == min(length for length in buckets(100) if length >= lengths[i])
  for batch, following in itertools.pairwise(found):
    assert len(batch.members) == batch.rows or batch.length != following.length


@given(st.lists(st.integers(1, 100), max_size=60))
def test_the_longest_come_first(lengths):
  order = [lengths[i] for batch in batches(lengths, 100, lambda length: 7) for i in batch.members]
  assert order == sorted(lengths, reverse=True)


def test_pad():
  expected = np.array([[5, 6, 0], [7, 0, 0], [0, 0, 0]], np.int32)
  found = pad([[5, 6], [7]], rows=3, length=3, padding=0)
  assert found.dtype == expected.dtype
  np.testing.assert_array_equal(found, expected)
