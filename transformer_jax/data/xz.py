"""Reads `.xz` files as the program `xz` does.

Python's `lzma.open` takes whatever is no stream behind the first one for the end of the file, also a damaged stream.
"""

import io
import lzma
from typing import BinaryIO, cast

_CHUNK = 1 << 16  # bytes that are read at a time


def reader(file: BinaryIO | io.BufferedIOBase) -> io.BufferedReader:
  """The uncompressed bytes of a file: those of all its streams, between and behind which may be zero bytes.

  Reading raises LZMAError where a stream is damaged, and EOFError where the file ends within one.
  """
  return io.BufferedReader(cast(io.RawIOBase, _Streams(cast(BinaryIO, file))), _CHUNK)


class _Streams(io.RawIOBase):
  def __init__(self, file: BinaryIO):
    self._file, self._stream, self._left = file, lzma.LZMADecompressor(), b""

  def readable(self) -> bool:
    return True

  def readinto(self, buffer: memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
    found = b""
    while not found and not (self._stream.eof and self._is_last()):
      found = self._decompressed(len(buffer))
    buffer[: len(found)] = found
    return len(found)

  def _decompressed(self, most: int) -> bytes:
    """The next bytes, at most so many; there may be none before the stream's end."""
    data, self._left = self._left, b""
    if self._stream.needs_input and not data and not (data := self._file.read(_CHUNK)):
      raise EOFError("it ends before its compressed text does")
    return self._stream.decompress(data, most)

  def _is_last(self) -> bool:
    """Whether nothing but zero bytes follows; otherwise begins the next stream."""
    data = self._stream.unused_data or self._file.read(_CHUNK)
    while data and not data.strip(b"\0"):
      data = self._file.read(_CHUNK)
    if data:
      self._stream, self._left = lzma.LZMADecompressor(lzma.FORMAT_XZ), data.lstrip(b"\0")
    return not data
