"""Duplicates of a text of any length, found on the disk.

A digest of each item goes into one of 64 files, by its first bits. Equal items are in one file, so one file at a time
is read and sorted. Memory holds one of these files and a byte for each item.
"""

import hashlib
from contextlib import ExitStack
from pathlib import Path

import numpy as np

_FILES = 64
DIGEST = [("first", "<u8"), ("second", "<u8")]  # 128 bits
_RECORD = np.dtype([*DIGEST, ("number", "<u8")])


def digest(item: str) -> bytes:
  """The 16 bytes that stand for an item; its first byte tells the file."""
  return hashlib.blake2b(item.encode(errors="surrogatepass"), digest_size=16).digest()


def later_ones(records: np.ndarray) -> np.ndarray:
  """The records of items that are equal to an earlier one; the fields behind the digest tell which is earlier."""
  records = records[np.lexsort([records[name] for name in reversed(records.dtype.names or ())])]
  same = (records["first"][1:] == records["first"][:-1]) & (records["second"][1:] == records["second"][:-1])
  return records[1:][same]


class Duplicates(ExitStack):
  """The items of a text and which of them have occurred before; a context manager, which closes its files.

  Args:
    folder: the folder of its files.
  """

  def __init__(self, folder: Path):
    super().__init__()
    names = [folder / f"digests.{number}" for number in range(_FILES)]
    self._files = [self.enter_context(open(name, "wb")) for name in names]  # noqa: SIM115  the stack closes them

  def add(self, number: int, item: str) -> None:
    """Adds an item with its number, which is larger than those before."""
    found = digest(item)
    self._files[found[0] % _FILES].write(found + number.to_bytes(8, "little"))

  def repeated(self, count: int) -> np.ndarray:
    """Whether each of the numbers below `count` is that of an item that is equal to an earlier one: bool `[count]`."""
    found = np.zeros(count, bool)
    for file in self._files:
      file.flush()
      found[later_ones(np.fromfile(file.name, _RECORD))["number"].astype(np.int64)] = True
    return found
