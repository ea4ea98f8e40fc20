"""Checks of files and folders that may come from an untrusted source.

Nothing in a run folder is a program, and no library is used that would run one. The checks here, and those of
`runs/untrusted_arrays.py`, keep a folder from using up memory or time, and from reaching files outside of it.
"""

import errno
import functools
import json
import math
import os
import stat
from collections.abc import Callable
from pathlib import Path

from etils import epath

from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.values import Json, JsonObject

# The most bytes of a JSON file. The largest such files have the shapes of some ten thousand arrays.
LARGEST_JSON = 1 << 24
# Groups in groups. A config has three, and descriptions of arrays have one for each level of modules.
_MOST_LEVELS = 100
# The highest compression ratio of trained parameters, and the size in bytes below which the ratio is not checked.
_COMPRESSION, _SMALL = 64, 1 << 26


def read_json(path: epath.Path | Path) -> Json:
  """The values of a JSON file.

  Raises:
    FileNotFoundError: the file does not exist.
    InputError: the file cannot be read, is too large or not JSON, or has a key twice, NaN, or a number out of range.
  """
  return json_of(path, lambda: read_bytes(path, LARGEST_JSON))


def json_of(path: epath.Path | Path, read: Callable[[], bytes], digits: int = 19) -> Json:
  """`read_json` for the bytes that `read` returns, at most `LARGEST_JSON`.

  Args:
    path: the file, for messages.
    read: a function that gives the file's content.
    digits: the most digits of a whole number.
  """
  try:
    integer = functools.partial(_integer, most=digits)
    values = json.loads(
      read().decode(), object_pairs_hook=_different, parse_int=integer, parse_float=_finite, parse_constant=_finite
    )
    return _shallow(values)
  except (FileNotFoundError, InputError):
    raise
  except RecursionError as error:
    raise InputError(f"{path} cannot be read: it is nested too deeply") from error
  except (OSError, ValueError) as error:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    raise InputError(f"{path} cannot be read: {reason}") from error


def read_bytes(path: epath.Path | Path, most: int) -> bytes:
  """A file's content.

  Raises:
    OSError: the file cannot be read.
    InputError: the file has more than `most` bytes.
  """
  with path.open("rb") as file:
    content = file.read(most + 1)
  if len(content) > most:
    raise InputError(f"{path} has more than {most:,} bytes, which is not what such a file holds")
  return content


def _different(pairs: list[tuple[str, Json]]) -> JsonObject:
  values: JsonObject = {}
  for name, value in pairs:
    if name in values:
      raise ValueError(f"the key {name!a} is there twice")
    values[name] = value
  return values


def _shallow(values: Json) -> Json:
  """The values; raises RecursionError if they are so deep that `json` may read them, but not write them."""
  level = [values]
  for _ in range(_MOST_LEVELS):
    groups = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
    if not (level := [each for group in groups for each in group]):
      return values
  raise RecursionError


def _integer(digits: str, most: int) -> int:
  if len(digits) > most:
    raise ValueError(f"{digits[:19]}... is a number of {len(digits)} digits")
  return int(digits)


def _finite(number: str) -> float:
  if not math.isfinite(float(number)):
    raise ValueError(f"{number[:19]} is no finite number")
  return float(number)


def require_own_files(folder: epath.Path) -> None:
  """Raises InputError if the folder has a link that leads out of it, or something that is neither file nor folder.

  Through such a link a reader could read, and training could write, any file of
  the user. Reading a pipe could wait forever. The folder itself may be a link.
  """
  if "://" in os.fspath(folder):
    return
  root = os.path.realpath(folder)
  try:
    for where, folders, files in os.walk(folder):
      for path in (os.path.join(where, name) for name in (*folders, *files)):
        _mode(path, root, "run folder")
  except RecursionError as error:  # of Python before 3.12
    raise InputError(f"{folder} has folders in folders without end: remove them") from error


def own_file(folder: epath.Path, name: str) -> epath.Path | None:
  """A file of a folder whose other content does not matter; None if it is not there.

  Raises:
    InputError: it is a link that leads out of the folder, or no file.
  """
  path = folder / name
  mode = _mode(os.fspath(path), os.path.realpath(folder), "folder")
  if mode is None:
    return None
  if not path.is_file():
    raise InputError(f"{path} is not a file: remove it")
  return path


def _mode(path: str, root: str, what: str) -> int | None:
  """What a file is, of `lstat`; None if it is not there; raises InputError for the two that no folder should have."""
  try:
    mode = os.lstat(path).st_mode
  except FileNotFoundError:
    return None  # a training run moves files
  if stat.S_ISLNK(mode) and os.path.commonpath([root, os.path.realpath(path)]) != root:
    raise InputError(f"{path} is a link that leads out of the {what}: put a copy in its place, or name another folder")
  if not (stat.S_ISLNK(mode) or stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
    raise InputError(f"{path} is neither a file nor a folder: remove it, or name another folder")
  return mode


def stored(path: epath.Path) -> int:
  """The bytes of a file that are data: a hole has none, and reads as zeros."""
  if "://" in os.fspath(path) or not hasattr(os, "SEEK_DATA"):
    return path.stat().length
  found, total, end = os.stat(path), 0, 0
  if found.st_blocks * 512 >= found.st_size:  # only a file that may have holes is opened
    return found.st_size
  with path.open("rb") as file:
    while True:
      try:
        begin = os.lseek(file.fileno(), end, os.SEEK_DATA)
        end = os.lseek(file.fileno(), begin, os.SEEK_HOLE)
      except OSError as error:
        return total if error.errno == errno.ENXIO else found.st_size  # no data is left, or the disk cannot tell
      total += end - begin


def is_too_much(size: int, data: int) -> bool:
  """Whether trained parameters cannot have so many bytes, as `data` bytes hold them on disk."""
  return size > max(_SMALL, _COMPRESSION * data)


def require_stored(path: epath.Path) -> None:
  """Raises InputError if nearly all of a file is a hole, so that reading it would fill the memory with zeros."""
  size, data = path.stat().length, stored(path)
  if is_too_much(size, data):
    raise InputError(f"{path} has {size:,} bytes, but only {data:,} of them are data: copy the file again")
