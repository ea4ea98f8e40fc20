"""A folder that is written completely or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from etils import epath

from transformer_jax.runs import locks
from transformer_jax.runtime.errors import InputError, writing
from transformer_jax.runtime.files import temporary_beside


def new(path: str | os.PathLike, flag: str) -> Path:
  """The absolute path of a folder that is new or empty; `flag` is the option that names it.

  Raises:
    InputError: there are files in it, or it is not on this machine.
  """
  if "://" in os.fspath(path):
    raise InputError(f"{path} is not on this machine: choose another {flag}, and copy the folder there")
  target = Path(os.path.abspath(os.path.expanduser(path)))
  if target.is_dir() and any(target.iterdir()):
    raise InputError(f"{target} holds files already: choose another {flag}")
  if os.path.lexists(target) and not target.is_dir():
    raise InputError(f"{target} is a file: choose another {flag}")
  if target.is_dir() and os.path.samefile(target, os.curdir):  # it would be gone, and who stands in it nowhere
    raise InputError(f"{target} is the current folder, which cannot be replaced: give a new folder in it as {flag}")
  if os.path.ismount(os.path.realpath(target)):
    raise InputError(f"{target} is where a disk is mounted: choose a new folder in it as {flag}")
  return Path(os.path.realpath(target))  # a folder can take the place of an empty one, but not of a link to it


@contextmanager
def complete(target: Path, flag: str) -> Iterator[Path]:
  """A folder to write into, which becomes `target` at the end of the body, or is deleted if the body fails."""
  folder = temporary_beside(target)
  try:
    target.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir()
  except OSError as error:
    raise InputError(f"{target} cannot be written: {error.strerror}; choose another {flag}") from error
  try:
    with writing(target):
      yield folder
      with locks.exclusive_lock_of_one_process(epath.Path(target), flag):  # a training may have begun in it meanwhile
        folder.replace(target)
  finally:
    shutil.rmtree(folder, ignore_errors=True)
