"""Duplicates of a text of any length, found on the disk.

A digest of each item goes into one of 64 files, by its first bits. Equal items are in one file, so one file at a time
is read and sorted. Memory holds one of these files and a byte for each item.
"""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import numpy as np

_FILES = 64
_RECORD = np.dtype([("first", "<u8"), ("second", "<u8"), ("number", "<u8")])  # 128 bits of the digest, and the number


class Duplicates:
  """The items of a text and which of them have occurred before.

  Args:
    files: 64 empty files, opened to be written.
  """

  def __init__(self, files: list[IO[bytes]]):
    self._files = files

  def add(self, number: int, item: str) -> None:
    """Adds an item with its number, which is larger than those before."""
    digest = hashlib.blake2b(item.encode(errors="surrogatepass"), digest_size=16).digest()
    self._files[digest[0] % _FILES].write(digest + number.to_bytes(8, "little"))

  def repeated(self, count: int) -> np.ndarray:
    """Whether each of the numbers below `count` is that of an item that is equal to an earlier one: bool `[count]`."""
    found = np.zeros(count, bool)
    for file in self._files:
      file.flush()
      records = np.fromfile(file.name, _RECORD)
      records = records[np.lexsort([records["number"], records["second"], records["first"]])]
      same = (records["first"][1:] == records["first"][:-1]) & (records["second"][1:] == records["second"][:-1])
      found[records["number"][1:][same].astype(np.int64)] = True
    return found


@contextmanager
def duplicates_in(folder: Path) -> Iterator[Duplicates]:
  """`Duplicates` with its files in `folder`."""
  with ExitStack() as stack:
    names = [folder / f"digests.{number}" for number in range(_FILES)]
    yield Duplicates([stack.enter_context(open(name, "wb")) for name in names])
