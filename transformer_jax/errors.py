"""The two ways in which a program of this project ends badly."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


class InputError(ValueError):
  """What the user gave cannot be used: a file, a line, a key. Exit status 2.

  The message is one sentence that names the file, line or key, says what was
  expected and what to do; the programs print it without a traceback.
  """

  exit_status = 2


class RunError(RuntimeError):
  """The work itself failed: a full disk, a loss that is not a number. Exit status 1.

  The message says what is kept and how to go on.
  """

  exit_status = 1


@contextmanager
def writing(path: str | os.PathLike) -> Iterator[None]:
  """Makes what the disk refuses to be written to `path` a RunError."""
  try:
    yield
  except OSError as error:
    raise RunError(
      f"cannot write {os.fspath(path)}: {error.strerror or error}; what was saved before is untouched: "
      "make room, and give the same command again"
    ) from error
