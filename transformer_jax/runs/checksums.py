"""Checksums of arrays, which tell whether a checkpoint still holds what was saved.

Orbax's files have checksums of their metadata, but not of the numbers.
"""

import zlib
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from transformer_jax.runtime.values import Json

_AT_A_TIME = 1 << 16  # numbers, which stay in the processor's own memory
_ODD = 2 * np.arange(_AT_A_TIME, dtype=np.uint32) + np.uint32(1)


def checksums(arrays: Mapping[str, ArrayLike]) -> dict[str, str]:
  """The CRC-32 of each array's type, shape and bytes, in eight hexadecimal digits."""
  return {name: f"{_crc32(np.asarray(x)):08x}" for name, x in arrays.items()}


def fit(recorded: Json, arrays: Mapping[str, ArrayLike]) -> bool:
  """Whether the checksums that a checkpoint has recorded are those of these arrays."""
  if isinstance(recorded, dict) and all(isinstance(recorded.get(name), int) for name in arrays):
    return recorded == {name: _weighted_sum(x) for name, x in arrays.items()}
  return recorded == checksums(arrays)


def _crc32(x: np.ndarray) -> int:
  header = f"{x.dtype.str} {x.shape} ".encode()
  return zlib.crc32(np.ascontiguousarray(x).reshape(-1).view(np.uint8).data, zlib.crc32(header))


def _weighted_sum(x: ArrayLike) -> int:
  """The checksum of older checkpoints: the sum over i of (2 i + 1) times the i-th number's bits, modulo 2^32.

  Two flipped top bits cancel in it, so that it is only read.
  """
  bits = np.ascontiguousarray(x).reshape(-1).view(np.uint32)
  total = 0
  for start in range(0, bits.size, _AT_A_TIME):
    part = bits[start : start + _AT_A_TIME]
    # 2 (start + j) + 1 is 2 start more than 2 j + 1.
    total += int(np.sum(part * _ODD[: part.size], dtype=np.uint64)) + 2 * start * int(np.sum(part, dtype=np.uint64))
  return total % 2**32
