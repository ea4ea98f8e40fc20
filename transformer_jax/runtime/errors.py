"""The two ways in which a program of this project ends badly."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PROGRAM = "transformer-jax"  # how the command line names itself in messages


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


def require(condition: bool, key: str, value: Any, expected: str) -> None:
  """Raises InputError unless a value of the config is as expected."""
  if not condition:
    raise InputError(f"config.{key} is {value!r}, but must be {expected}")


def require_option(name: str, value: object, condition: bool, expected: str) -> None:
  """Raises InputError unless an argument of a function or a command is as expected."""
  if not condition:
    raise InputError(f"{name} is {value}, but must be {expected}")


@contextmanager
def writing(path: str | os.PathLike) -> Iterator[None]:
  """Makes what the disk refuses to be written to `path` a RunError."""
  try:
    yield
  except BrokenPipeError:  # no disk: a reader who has left
    raise
  except OSError as error:
    raise RunError(
      f"cannot write {os.fspath(path)}: {error.strerror or error}; what was saved before is untouched: "
      "make room, and give the same command again"
    ) from error


def one_line(message: object, most: int = 1000) -> str:
  """A message as a terminal shows it, whatever a stranger's file put into it."""
  text = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", str(message)).strip()
  return text if len(text) <= most else f"{text[: most - 3]}..."


def first_line(error: Exception, most: int = 200) -> str:
  """What an error says first, or its name if it says nothing."""
  return one_line((str(error).strip() or type(error).__name__).splitlines()[0], most)


def is_out_of_memory(error: Exception) -> bool:
  """Whether Python, or XLA on a device, had no memory left."""
  return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)
