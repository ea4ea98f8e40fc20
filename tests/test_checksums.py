"""Sums over the bits of arrays."""

import numpy as np
import pytest

from transformer_jax.checksums import checksums


def by_hand(x):
  bits = [int(number) for number in np.frombuffer(x.tobytes(), np.uint32)]
  return sum((2 * i + 1) * number for i, number in enumerate(bits)) % 2**32


@pytest.fixture
def arrays():
  generator = np.random.default_rng(0)
  return {
    "table": generator.standard_normal((31, 7)).astype(np.float32),
    "long": generator.standard_normal(70_001).astype(np.float32),
    "scalar": np.int32(-5),
    "odd": np.float32([np.nan, np.inf, -0.0, 1e-45]),
    "none": np.zeros((0, 3), np.float32),
  }


def test_sums_are_those_of_the_formula(arrays):
  assert checksums(arrays) == {name: by_hand(x) for name, x in arrays.items()}


def test_every_bit_and_the_order_count(arrays):
  table = arrays["table"]
  [before] = checksums({"table": table}).values()
  flipped = {}
  for place, bit in ((0, 0), (0, 31), (103, 17), (216, 31), (216, 0)):
    copy = table.copy()
    copy.reshape(-1).view(np.uint32)[place] ^= np.uint32(1 << bit)
    flipped[f"{place} {bit}"] = copy
  flipped["order"] = table[::-1]
  flipped["shape"] = np.roll(table, 1)
  assert before not in checksums(flipped).values()
