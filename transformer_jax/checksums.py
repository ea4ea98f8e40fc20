"""Sums over the bits of arrays, by which a checkpoint is known to hold what was saved in it.

Its own files have such sums over their descriptions, but not over the numbers.
"""

from typing import Any

import numpy as np

_AT_A_TIME = 1 << 16  # numbers, which stay in the processor's own memory
_ODD = 2 * np.arange(_AT_A_TIME, dtype=np.uint32) + np.uint32(1)


def _weighted_sum(x: Any) -> int:
  bits = np.ascontiguousarray(x).reshape(-1).view(np.uint32)
  total = 0
  for start in range(0, bits.size, _AT_A_TIME):
    part = bits[start : start + _AT_A_TIME]
    # 2 (start + j) + 1 is 2 start more than 2 j + 1.
    total += int(np.sum(part * _ODD[: part.size], dtype=np.uint64)) + 2 * start * int(np.sum(part, dtype=np.uint64))
  return total % 2**32


def checksums(arrays: dict[str, Any]) -> dict[str, int]:
  """The sum over i of (2 i + 1) times the i-th number's bits, modulo 2^32, of each array.

  The weights are odd, so that every single bit counts; their order counts too.

  Args:
    arrays: of 32-bit numbers, by name.
  """
  return {name: _weighted_sum(x) for name, x in arrays.items()}
