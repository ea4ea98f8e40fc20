"""Standard output and standard error of a program, of which either can be closed, full, or a pipe that nobody reads."""

import io
import os
import sys
from contextlib import suppress


class _Lossy(io.FileIO):
  """A file that takes everything: what cannot be written is lost."""

  def write(self, content, /) -> int:
    written = None
    with suppress(OSError):
      written = super().write(content)
    return len(content) if written is None else written


def open_standard_error() -> None:
  """Lets nothing that is said on standard error end the program, and have it said nowhere else where it is closed.

  Whoever looks at `sys.stderr` from now on has a stream that cannot fail, and so has Python at its exit.
  """
  if sys.stderr is None:
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  until the program ends
  elif sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
    lossy = io.BufferedWriter(_Lossy(sys.stderr.fileno(), "w", closefd=False))
    sys.stderr = io.TextIOWrapper(lossy, sys.stderr.encoding, sys.stderr.errors, line_buffering=True)


def leave_standard_output() -> None:
  """Writes what waits for standard output, and loses it where that fails.

  At its exit Python would try again, complain, and end with status 120.
  """
  if sys.stdout is None:
    return
  try:
    sys.stdout.flush()
  except OSError:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
