"""A file that a command writes at its end: checked before the work, and replaced as a whole after it."""

import os
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_jax.runtime.errors import InputError, require_option, writing
from transformer_jax.runtime.files import expanded, path_of, same_file, write_atomically

if TYPE_CHECKING:  # --help must not wait for this import
  from etils import epath


# Of file systems in use, less what `write_atomically` adds to it for a moment.
_LONGEST_NAME = 255 - 40


def check_writable(flag: str, name: str, read: Iterable[str | None], workdirs: Iterable[str] = ()) -> None:
  """Refuses a file that cannot be written, before the work that would be lost.

  Args:
    flag: the flag that names the file.
    name: its name, as the user gave it.
    read: the files that the command reads; None is none.
    workdirs: the run folders that the command reads.

  Raises:
    InputError: it is one of the files that are read, standard output's file, or its folder cannot be written to; or it
      would be read as a compressed file.
  """
  from transformer_jax.data.text import COMPRESSED
  from transformer_jax.runs import run_folder

  path = path_of(name)
  if path.suffix in COMPRESSED:
    raise InputError(f"{flag} {path} is written as plain text, but would be read as compressed: name it otherwise")
  for other in read:
    if other and same_file(path, path_of(other)):
      raise InputError(f"{flag} {path} is a file that is read: give another one")
  for workdir in workdirs:
    if run_folder.is_part(path_of(workdir), path):
      raise InputError(f"{flag} {path} is a file of the run in {workdir}: give another one")
  if "://" in name:
    run_folder.require_reachable(path)
    return
  # Nothing is opened here: when a pipe is closed again, its reader takes that for the end.
  stream = _is_stream(path)
  if not stream and _is_standard_output(path):  # which is written to, but no longer has a name once it is replaced
    raise InputError(f"{flag} {path} is also standard output's file: give another one")
  real = path if stream else path_of(os.path.realpath(path))  # what `write` replaces
  too_long = len(os.fsencode(real.name)) > _LONGEST_NAME
  if too_long or real.is_dir() or not real.parent.is_dir() or not os.access(real if stream else real.parent, os.W_OK):
    raise InputError(f"{flag} {path} cannot be written: give a file in a folder that can be")


def local_path(flag: str, name: str) -> Path:
  """The path that a flag names, with the user's home folder for `~`.

  Raises:
    InputError: it is in a bucket.
  """
  if "://" in name:
    raise InputError(f"{flag} {name} is in a bucket, where this command cannot write: give a local path")
  return expanded(name)


def local_folder(flag: str, name: str) -> Path:
  """The folder that a flag names, which is new or can be written to.

  Raises:
    InputError: it is a file, in a bucket or may not be written to.
  """
  folder = local_path(flag, name)
  require_option(flag, name, folder.is_dir() or not folder.exists(), "a folder: it is a file")
  require_option(flag, name, not folder.exists() or os.access(folder, os.W_OK), "a folder that you may write to")
  return folder


def require_prefix(name: str, *, there: bool = True) -> None:
  """Raises InputError if no files can be called NAME.en and so on: `folder/` and `..` are no beginning of a name.

  Args:
    name: the value of --output.
    there: whether its folder can be written to, as far as the caller has looked.
  """
  if not there or os.path.basename(name) in ("", ".", ".."):
    raise InputError(f"--output {name} cannot be written: give the beginning of a name in a folder that can be")


def require_one_meaning(prefix: Path, languages: Iterable[str]) -> None:
  """Raises InputError if PREFIX.LANGUAGE exists compressed, so that training on PREFIX could mean either file."""
  from transformer_jax.data.text import COMPRESSED

  for other in (Path(f"{prefix}.{language}{ending}") for language in languages for ending in COMPRESSED):
    if other.exists():
      raise InputError(f"{other} exists, so config.data.train={prefix} could mean it: give another --output")


def write(name: str, content: bytes) -> None:
  """Writes a file as a whole: an existing file keeps its content if the disk is full."""
  path = path_of(name)
  if "://" not in name and not _is_stream(path):
    write_atomically(path_of(os.path.realpath(path)), content)
    return
  with writing(path):
    path.write_bytes(content)


def _is_stream(path: "epath.Path") -> bool:
  """Whether a path is a pipe or a device: it has no content to keep, and a file must not replace it."""
  try:
    return not stat.S_ISREG(os.stat(path).st_mode)
  except OSError:  # there is none, or there can be none
    return False


def _is_standard_output(path: "epath.Path") -> bool:
  with suppress(AttributeError, OSError, ValueError):  # there is no such file, or standard output is none
    return os.path.samestat(os.stat(path), os.fstat(sys.stdout.fileno()))
  return False
