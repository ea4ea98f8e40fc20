"""The two kinds of errors that end a program of this project with one sentence, and functions that raise them."""

import dataclasses
import enum
import errno
import numbers
import os
import re
import reprlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_short = reprlib.Repr()  # shortens a value of any size and depth
_short.maxstring = _short.maxother = 200
PROGRAM = "transformer-jax"  # the name of the command line in messages
# Errors of the file system that the name of a file makes, whatever is on the disk.
OF_NAMES = {errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}
ADVICE = {
  **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "make room"),
  **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "make it writable, or choose another place"),
}


class InputError(ValueError):
  """An input of the user cannot be used: a file, a line, a key. The exit status is 2.

  The message is one sentence: it names the file, line or key, and says what was
  expected and what to do. The programs print it without a traceback.
  """

  exit_status = 2


class OptionError(InputError):
  """An argument of a function, or a flag of a command, is not as expected.

  Args:
    name: the argument's name, as Python writes it, or the flag.
    problem: the rest of the sentence.
  """

  def __init__(self, name: str, problem: str):
    super().__init__(f"{name} {problem}")
    self._name, self._problem = name, problem

  def __reduce__(self) -> tuple[type, tuple[str, str]]:  # Python would make it again from the one sentence
    return type(self), (self._name, self._problem)

  def of_flag(self) -> str:
    """The message with the name of the flag in place of the argument's."""
    return f"--{self._name.lstrip('-').replace('_', '-')} {self._problem}"


class RunError(RuntimeError):
  """The work itself failed, for example by a full disk or a loss of NaN. The exit status is 1.

  The message says what is kept and how to continue.
  """

  exit_status = 1


def require(key: str, value: object, condition: bool, expected: str) -> None:
  """Raises InputError unless a value of the config is as expected."""
  if not condition:
    raise InputError(f"config.{key} is {_short.repr(value)}, but must be {expected}")


def require_key(group: object, key: str, condition: bool, expected: str) -> None:
  """`require` for a key's own value, which the dataclass `group` has: `train.steps` is its attribute `steps`."""
  value = getattr(group, key.rpartition(".")[2])
  require(key, getattr(value, "value", value), condition, expected)  # of an enum, what the user writes


def convert_words(group: Any, prefix: str) -> None:
  """Replaces each word of a config's group by the member that it names, such as "adamw": the checks compare members."""
  for field in dataclasses.fields(group):
    value, kind = getattr(group, field.name), type(field.default)
    if issubclass(kind, enum.Enum) and isinstance(value, str):
      words = [member.value for member in kind]
      require_key(group, f"{prefix}.{field.name}", value in words, f"one of {', '.join(map(str, words))}")
      setattr(group, field.name, kind(value))


def os_error_number(error: BaseException) -> int | None:
  """The number of the error of the operating system that an error is, or that TensorStore says it comes from."""
  if isinstance(error, OSError):
    return error.errno
  found = re.search(r"os_error_code='(\d+)'", str(error))
  return int(found[1]) if found else None


def require_option(name: str, value: object, condition: bool, expected: str) -> None:
  """Raises OptionError unless an argument of a function or a command is as expected."""
  if not condition:
    raise OptionError(name, f"is {value}, but must be {expected}")


def require_whole(name: str, value: object) -> None:
  """Raises OptionError unless an argument of a function is a whole number, of Python or of NumPy."""
  whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
  require_option(name, repr(value), whole, "a whole number")  # 2 is one, and '2' is none


@contextmanager
def writing(path: str | os.PathLike) -> Iterator[None]:
  """Turns an error of the file system in the body into a RunError that names `path`, or InputError for a bad name."""
  try:
    yield
  except BrokenPipeError:  # not the disk's fault: a pipe's reader has closed it
    raise
  except OSError as error:
    raise write_error(os.fspath(path), error) from error


def write_error(name: str, error: OSError) -> InputError | RunError:
  """The error of a file that cannot be written: RunError, or InputError if its name is the reason."""
  if error.errno in OF_NAMES:
    return InputError(f"cannot write {name}: {error.strerror}; choose another name")
  advice = ADVICE.get(error.errno or 0, "mend that")
  return RunError(
    f"cannot write {name}: {error.strerror or error}; what was saved before is untouched: {advice}, and give the same "
    "command again"
  )


def one_line(message: object, most: int = 1000) -> str:
  """A message as one line of at most `most` characters, without the control characters that a file may put into it."""
  text = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", str(message)).strip()
  return text if len(text) <= most else f"{text[: most - 3]}..."


def first_line(error: Exception, most: int = 200) -> str:
  """The first line of an error's message, or the error's name if the message is empty."""
  return one_line((str(error).strip() or type(error).__name__).splitlines()[0], most)


def is_out_of_memory(error: Exception) -> bool:
  """Whether Python, or XLA on a device, ran out of memory."""
  return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)
