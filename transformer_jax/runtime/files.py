"""The project's cache folder, and the replacement of files."""

import io
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from transformer_jax.runtime.errors import InputError, writing

if TYPE_CHECKING:  # --help must not wait for this import
  from etils import epath


_OWN = "TRANSFORMER_JAX_CACHE"
AnyPath = TypeVar("AnyPath", bound="epath.Path | Path")


def user_cache() -> Path:
  """The project's cache folder: `$TRANSFORMER_JAX_CACHE`, or a folder in the user's cache by the XDG convention.

  Raises:
    InputError: the user has no home folder, as in some containers; or the cache would be in a bucket.
  """
  if own := os.environ.get(_OWN):
    if "://" in own:
      raise InputError(f"{_OWN} is {own}, but the cache is read in place: set it to a folder on this machine")
    return expanded(own)
  if xdg := os.environ.get("XDG_CACHE_HOME"):
    return expanded(xdg) / "transformer_jax"
  try:
    return Path.home() / ".cache" / "transformer_jax"
  except RuntimeError as error:
    raise InputError(f"there is no home folder, so no place for the cache: set {_OWN} to a folder") from error


def cache_beside(workdir: str) -> Path | None:
  """Puts this process' cache beside the run folder if the user has no home folder, and returns the cache's folder.

  Returns None if the user has a home folder.
  """
  try:
    user_cache()
    return None
  except InputError:
    if "://" in workdir or os.environ.get(_OWN):
      raise
  folder = Path(os.path.abspath(workdir)).parent / "transformer_jax_cache"
  os.environ[_OWN] = str(folder)
  return folder


def same_file(one: "str | os.PathLike[str]", other: "str | os.PathLike[str]") -> bool:
  """Whether two paths lead to the same file, also through links."""
  try:
    return os.path.samefile(one, other)
  except OSError:  # one does not exist, or is in a bucket
    return _resolved(one) == _resolved(other)


def _resolved(path: "str | os.PathLike[str]") -> str:
  return os.fspath(path) if "://" in os.fspath(path) else os.path.realpath(path)


def expanded(path: str) -> Path:
  """The path with the user's home folder for `~`; without one, or where the user is unknown, it stays as it is."""
  return Path(os.path.expanduser(path))


def path_of(name: "str | os.PathLike[str]") -> "epath.Path":
  """The path, on this machine or in a bucket, with the user's home folder for `~`.

  Raises:
    InputError: it is an address of another kind, such as https://, or etils takes it for one in a bucket, as /s3/x.
  """
  from etils import epath

  given = os.fspath(name)
  try:
    path = epath.Path(given if "://" in given else os.path.expanduser(given))
  except KeyError as error:  # of etils, which knows a few kinds of addresses
    raise InputError(
      f"{given} is neither a path on this machine nor one in a bucket, such as gs://BUCKET/NAME: give one of these"
    ) from error
  if "://" in os.fspath(path) and "://" not in given:
    raise InputError(f"{given} would be read as {path}, which is in a bucket: choose a folder of another name")
  return path


@contextmanager
def open_buffered(path: "epath.Path | Path") -> Iterator[io.BufferedIOBase]:
  """Opens a file for reading bytes; one in a bucket gets a buffer, as its own `readline` takes no size."""
  with path.open("rb") as file:
    if isinstance(file, io.BufferedReader):
      yield file
    else:
      with io.BufferedReader(cast(io.RawIOBase, file)) as buffered:
        yield buffered


def write_atomically(path: "epath.Path | Path", content: bytes) -> None:
  """Replaces a file as a whole, so that a reader never sees a half-written file.

  Raises:
    RunError: the file cannot be written; its old content is unchanged.
  """
  temporary = temporary_beside(path)
  with writing(path):
    try:
      write_new(temporary, content)
      temporary.replace(path)
    except OSError:
      temporary.unlink(missing_ok=True)
      raise


def write_new(path: "epath.Path | Path", content: bytes) -> None:
  """Writes a file that must not exist, not even as a link to another file."""
  if "://" in os.fspath(path):  # a bucket, which has no links
    path.write_bytes(content)
    return
  with open(path, "xb") as file:
    file.write(content)


def remove_left_behind(folder: "epath.Path | Path") -> None:
  """Deletes the temporary files of a killed process; no process may write such files in the folder meanwhile."""
  with suppress(FileNotFoundError):  # a bucket has no empty folder
    for path in folder.iterdir():
      if is_left_behind(path.name) and not path.is_dir():  # a folder is of an export, which may still write in it
        path.unlink(missing_ok=True)


def temporary_beside(path: AnyPath) -> AnyPath:
  """A name that nobody knows in advance, for what becomes `path` once it is whole."""
  return path.parent / f".{path.name}.{uuid.uuid4().hex}.tmp"


def is_left_behind(name: str) -> bool:
  """Whether a file has a name that `temporary_beside` gave."""
  return re.fullmatch(r"\..+\.[0-9a-f]{32}\.tmp", name) is not None
