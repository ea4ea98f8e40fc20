"""Where the project keeps what it can make again, and how it replaces a file."""

import os
import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_jax.runtime.errors import InputError, writing

if TYPE_CHECKING:  # the command line's help must not wait for it
  from etils import epath


_OWN = "TRANSFORMER_JAX_CACHE"


def user_cache() -> Path:
  """`$TRANSFORMER_JAX_CACHE`, or the user's cache folder by the XDG convention.

  Raises:
    InputError: the user has no home folder, as in some containers.
  """
  if own := os.environ.get(_OWN):
    return Path(own)
  if xdg := os.environ.get("XDG_CACHE_HOME"):
    return Path(xdg) / "transformer_jax"
  try:
    return Path.home() / ".cache" / "transformer_jax"
  except RuntimeError as error:
    raise InputError(f"there is no home folder, and so none for what is kept: set {_OWN} to a folder") from error


def keep_beside(workdir: str) -> Path | None:
  """Has this process keep its cache beside the run folder where the user has no home folder, and tells where."""
  try:
    user_cache()
    return None
  except InputError:
    if "://" in workdir:
      raise
  folder = Path(os.path.abspath(workdir)).parent / "transformer_jax_cache"
  os.environ[_OWN] = str(folder)
  return folder


def is_text(path: str) -> bool:
  """Whether a path can be written as UTF-8; other bytes are surrogates in Python."""
  try:
    path.encode()
  except UnicodeEncodeError:
    return False
  return True


def write_atomically(path: "epath.Path | Path", content: bytes) -> None:
  """Replaces a file as a whole, so that a reader never sees half of it.

  Raises:
    RunError: the disk refuses it; the file is as it was.
  """
  temporary = path.parent / f".{path.name}.{uuid.uuid4().hex}.tmp"
  with writing(path):
    try:
      write_new(temporary, content)
      temporary.replace(path)
    except OSError:
      temporary.unlink(missing_ok=True)
      raise


def write_new(path: "epath.Path | Path", content: bytes) -> None:
  """Writes a file that must not be there, not even as a link, which would lead to another one."""
  if "://" in os.fspath(path):  # a bucket, which has no links
    path.write_bytes(content)
    return
  with open(path, "xb") as file:
    file.write(content)


def remove_left_behind(folder: "epath.Path | Path") -> None:
  """Deletes what `write_atomically` had not renamed yet when its process was killed; nobody may write there now."""
  for path in folder.iterdir():
    if re.fullmatch(r"\..+\.[0-9a-f]{32}\.tmp", path.name):
      path.unlink(missing_ok=True)
