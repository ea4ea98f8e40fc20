"""Standard input and output of a program that other programs use through pipes.

The program answers the lines it has before it waits for more, and it continues
to read if its answers are not yet read. So neither a program that writes a line
and waits for the answer, nor one that writes everything before it reads, hangs.
"""

import os
import select
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TextIO, TypeVar

from transformer_jax.data.text import LONGEST_LINE
from transformer_jax.runtime.errors import InputError, RunError, writing

Argument = TypeVar("Argument")
Found = TypeVar("Found")

_BLOCK = 1 << 16
_IN_MEMORY = 1 << 24
_TEMPORARY = "the temporary file of what waits to be written"


def descriptor(stream: TextIO | None, name: str) -> int:
  """The file descriptor of `sys.stdin` or `sys.stdout`.

  Raises:
    InputError: the stream is closed.
  """
  if stream is None or stream.closed:
    raise InputError(f"{name} is closed: give it a file, a pipe or /dev/null")
  return stream.fileno()


class Lines:
  """The lines of a descriptor, as bytes; it can tell whether another line is ready."""

  def __init__(self, descriptor: int):
    self._descriptor = descriptor
    self._buffer = bytearray()
    self._searched = 0  # bytes of the buffer without a line feed
    self._ended = False

  def readline(self, size: int, /) -> bytes:
    """The next line with its end, or its first `size` bytes; empty at the end of the input."""
    while not self._has_line():
      self._read()
    end = self._buffer.find(b"\n", self._searched) + 1 or len(self._buffer)
    line = bytes(self._buffer[: min(end, size)])
    del self._buffer[: len(line)]
    self._searched = 0
    return line

  def more(self, seconds: float) -> bool:
    """Whether `readline` can return without waiting, now or within `seconds`."""
    deadline = time.monotonic() + seconds
    while not self._has_line():
      if not _is_readable(self._descriptor, max(0.0, deadline - time.monotonic())):
        return False
      self._read()
    return True

  def _has_line(self) -> bool:
    if self._ended or self._buffer.find(b"\n", self._searched) >= 0:
      return True
    self._searched = len(self._buffer)
    return self._searched > LONGEST_LINE  # the rest of such a line is not read, as it is refused

  def _read(self) -> None:
    try:
      while (block := _if_ready(os.read, self._descriptor, _BLOCK)) is None:
        select.select([self._descriptor], [], [])
    except OSError as error:
      raise InputError(f"cannot read standard input: {error.strerror}; give it a file or a pipe") from error
    self._buffer += block
    self._ended = not block


def _if_ready(function: Callable[[int, Argument], Found], descriptor: int, argument: Argument) -> Found | None:
  """The result of `os.read` or `os.write`; None if a descriptor that another program made non-blocking is not ready."""
  try:
    return function(descriptor, argument)
  except BlockingIOError:
    return None


def _is_readable(descriptor: int, seconds: float) -> bool:
  try:
    return bool(select.select([descriptor], [], [], seconds)[0])
  except OSError:  # not every system supports `select` for every kind of file
    return True


class Output:
  """Writes to a descriptor in a separate thread, so that a slow reader does not stop the program.

  Text that is not yet written waits in memory, or in a temporary file if it is
  long. `Output` is a context manager, which ends when all text is written, or at
  a Ctrl-C.
  """

  def __init__(self, descriptor: int):
    self._descriptor = descriptor
    self._waiting = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  closed in __exit__
    self._begin = self._end = 0  # the part of the file that is not yet written
    self._closed = False
    self._error: Exception | None = None
    self._changed = threading.Condition()
    self._thread = threading.Thread(target=self._run, daemon=True)

  def __enter__(self) -> "Output":
    self._thread.start()
    return self

  def __exit__(
    self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
  ) -> None:
    with self._changed:
      self._closed = True
      if isinstance(error, KeyboardInterrupt):
        self._begin = self._end
        self._close()
        return
      self._changed.notify()
    self._thread.join()
    self._close()
    self._raise_error()

  def _close(self) -> None:
    with suppress(OSError):  # a full disk, which is known by now
      self._waiting.close()

  def write(self, text: str) -> None:
    """Accepts a text; it is written in UTF-8 in any locale.

    Raises:
      BrokenPipeError: there is no reader.
      RunError: an earlier text could not be written, or this one has no place to wait.
    """
    with self._changed:
      self._raise_error()
      with writing(_TEMPORARY):
        self._waiting.seek(self._end)
        self._end += self._waiting.write(text.encode())
      self._changed.notify()

  def _raise_error(self) -> None:
    if self._error is not None:
      raise self._error

  def _run(self) -> None:
    try:
      while block := self._next():
        with writing("standard output"):
          while block:
            written = _if_ready(os.write, self._descriptor, block)
            if written is None:
              select.select([], [self._descriptor], [])
            block = block[written or 0 :]
    except (BrokenPipeError, InputError, RunError) as error:
      with self._changed:
        self._error = error

  def _next(self) -> bytes:
    """Some of the waiting text, as soon as there is any; empty at the end."""
    with self._changed:
      if self._begin == self._end and not self._closed:
        self._begin = self._end = 0
        self._waiting.seek(0)
        self._waiting.truncate()
        self._changed.wait_for(lambda: self._closed or self._begin < self._end)
      if self._begin == self._end:
        return b""
      with writing(_TEMPORARY):  # seeking writes what Python holds back
        self._waiting.seek(self._begin)
        block = self._waiting.read(_BLOCK)
      self._begin += len(block)
      return block
