"""Checksums of arrays: what they see, and that those of older checkpoints still count."""

import binascii

import numpy as np
import pytest

from transformer_jax.runs.checksums import checksums, fit


def by_hand(x):
  bits = [int(number) for number in np.frombuffer(x.tobytes(), np.uint32)]
  return sum((2 * i + 1) * number for i, number in enumerate(bits)) % 2**32


@pytest.fixture
def arrays():
  generator = np.random.default_rng(0)
  return {
    "table": generator.standard_normal((31, 7)).astype(np.float32),
    "other": generator.standard_normal((31, 7)).astype(np.float32),
    "long": generator.standard_normal(70_001).astype(np.float32),
    "scalar": np.int32(-5),
    "odd": np.float32([np.nan, np.inf, -0.0, 1e-45]),
    "none": np.zeros((0, 3), np.float32),
  }


def flipped(x, *bits):
  copy = np.array(x)
  for place, bit in bits:
    copy.reshape(-1).view(np.uint32)[place] ^= np.uint32(1 << bit)
  return copy


def top_bits(x, count):
  places = np.random.default_rng(count).choice(x.size, count, replace=False)
  return flipped(x, *((place, 31) for place in places))


def test_sums_are_crc_32(arrays):
  expected = binascii.crc32(b"<f4 (31, 7) " + arrays["table"].tobytes())
  assert checksums(arrays)["table"] == f"{expected:08x}"
  assert all(len(value) == 8 for value in checksums(arrays).values())


def changed(table, other):
  return {
    **{f"bit {bit} of number {place}": flipped(table, (place, bit)) for place in (0, 103, 216) for bit in (0, 17, 31)},
    **{f"{count} signs": top_bits(table, count) for count in (2, 4, 6, 100, 216)},
    "all signs": -table,
    "signs of a row": np.concatenate([-table[:1], table[1:]]),
    "rows in another order": table[::-1],
    "moved by one": np.roll(table, 1),
    "transposed": np.ascontiguousarray(table.T),
    "another shape": table.reshape(7, 31),
    "another type": table.view(np.int32),
    "another array": other,
    "zeros": np.zeros_like(table),
  }


def test_what_is_changed_has_another_sum(arrays):
  [before] = checksums({"table": arrays["table"]}).values()
  for name, array in changed(arrays["table"], arrays["other"]).items():
    assert checksums({"table": array}) != {"table": before}, name
    assert not fit({"table": before}, {"table": array}), name
  recorded = checksums(arrays)
  assert fit(recorded, arrays)
  assert not fit(recorded, arrays | {"table": arrays["other"], "other": arrays["table"]})
  assert not fit(recorded, {name: x for name, x in arrays.items() if name != "long"})
  assert not fit(None, arrays)


def test_sums_of_older_checkpoints_still_count(arrays):
  recorded = {name: by_hand(x) for name, x in arrays.items()}
  assert fit(recorded, arrays)
  for bit in (0, 17, 31):
    assert not fit(recorded, arrays | {"long": flipped(arrays["long"], (65_537, bit))})
  assert not fit(recorded, arrays | {"table": arrays["other"], "other": arrays["table"]})
