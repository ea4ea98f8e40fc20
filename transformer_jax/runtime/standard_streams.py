"""Handling of standard output and standard error that are closed, full, or a pipe without a reader."""

import io
import os
import sys
from contextlib import suppress


class _Lossy(io.FileIO):
  """A file that accepts every write; content that cannot be written is lost."""

  def write(self, content, /) -> int:
    written = None
    with suppress(OSError):
      written = super().write(content)
    return len(content) if written is None else written


def open_standard_error() -> None:
  """Replaces `sys.stderr` by a stream that never fails, so that no message on standard error can end the program.

  If standard error is closed, the messages are lost.
  """
  if sys.stderr is None:
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  open until the program ends
  elif sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
    lossy = io.BufferedWriter(_Lossy(sys.stderr.fileno(), "w", closefd=False))
    sys.stderr = io.TextIOWrapper(lossy, sys.stderr.encoding, sys.stderr.errors, line_buffering=True)


def leave_standard_output() -> None:
  """Flushes standard output; if that fails, the rest of the output is lost.

  Otherwise Python would flush again at its exit, report the error, and end with status 120.
  """
  if sys.stdout is None:
    return
  try:
    sys.stdout.flush()
  except OSError:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
