"""Standard input and output of a program that others talk to through pipes.

It answers what it has got before it waits for more, and reads on where nobody
takes its answers yet: whoever writes a line and waits, or writes everything
before reading anything, is not left waiting.
"""

import os
import select
import tempfile
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from transformer_jax.data.text import LONGEST_LINE
from transformer_jax.runtime.errors import InputError, writing

_BLOCK = 1 << 16
_IN_MEMORY = 1 << 24


def descriptor(stream: Any, name: str) -> int:
  """The file descriptor of `sys.stdin` or `sys.stdout`.

  Raises:
    InputError: it is closed.
  """
  if stream is None or stream.closed:
    raise InputError(f"{name} is closed: give it a file, a pipe or /dev/null")
  return stream.fileno()


class Lines:
  """The bytes of a descriptor, line by line, which knows whether there are more to be had at once."""

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
    """Whether `readline` need not wait, now or before so many seconds have passed."""
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
    return self._searched > LONGEST_LINE  # which is not waited for, as it is refused

  def _read(self) -> None:
    try:
      while (block := _if_ready(os.read, self._descriptor, _BLOCK)) is None:
        select.select([self._descriptor], [], [])
    except OSError as error:
      raise InputError(f"cannot read standard input: {error.strerror}; give it a file or a pipe") from error
    self._buffer += block
    self._ended = not block


def _if_ready(function: Callable[[int, Any], Any], descriptor: int, argument: Any) -> Any:
  """What `os.read` or `os.write` gives; None where another program made the descriptor one that does not wait."""
  try:
    return function(descriptor, argument)
  except BlockingIOError:
    return None


def _is_readable(descriptor: int, seconds: float) -> bool:
  try:
    return bool(select.select([descriptor], [], [], seconds)[0])
  except OSError:  # not every system can tell this of every kind of file
    return True


class Output:
  """Writes to a descriptor in a thread of its own, so that a reader who pauses stops nobody.

  What has not been taken waits in memory, and where that is much in a temporary
  file. To be used as a context manager, which ends when all is written, but not
  later than a Ctrl-C.
  """

  def __init__(self, descriptor: int):
    self._descriptor = descriptor
    self._waiting = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  closed in __exit__
    self._begin = self._end = 0  # of what waits in it
    self._closed = False
    self._error: OSError | None = None
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
        self._waiting.close()
        return
      self._changed.notify()
    self._thread.join()
    self._waiting.close()
    self._raise_error()

  def write(self, text: str) -> None:
    """Accepts a text, in UTF-8 whatever the locale.

    Raises:
      BrokenPipeError: there is no reader.
      RunError: an earlier one could not be written.
    """
    with self._changed:
      self._raise_error()
      with writing(tempfile.gettempdir()):
        self._waiting.seek(self._end)
        self._end += self._waiting.write(text.encode())
      self._changed.notify()

  def _raise_error(self) -> None:
    if self._error is not None:
      with writing("standard output"):
        raise self._error

  def _run(self) -> None:
    try:
      while block := self._next():
        while block:
          written = _if_ready(os.write, self._descriptor, block)
          if written is None:
            select.select([], [self._descriptor], [])
          block = block[written or 0 :]
    except OSError as error:
      with self._changed:
        self._error = error

  def _next(self) -> bytes:
    """Some of what waits, as soon as there is any; nothing at the end."""
    with self._changed:
      if self._begin == self._end and not self._closed:
        self._begin = self._end = 0
        self._waiting.seek(0)
        self._waiting.truncate()
        self._changed.wait_for(lambda: self._closed or self._begin < self._end)
      if self._begin == self._end:
        return b""
      self._waiting.seek(self._begin)
      block = self._waiting.read(_BLOCK)
      self._begin += len(block)
      return block
