"""SHA256SUMS: the digests of a run folder's small files, which reveal damage.

`sha256sum --check SHA256SUMS` reads them too. A folder without that file, as older versions made it, is believed.
"""

import hashlib
import os
import re
import time
from collections.abc import Collection, Mapping

from etils import epath

from transformer_jax.runtime import untrusted
from transformer_jax.runtime.errors import InputError, writing
from transformer_jax.runtime.files import write_atomically

FILE = "SHA256SUMS"

_LARGEST = 1 << 16  # bytes
_LINE = re.compile(r"([0-9a-f]{64})  ([\w.]+)")
_SECONDS_BETWEEN_LOOKS = (0.05, 0.1, 0.2, 0.4)


def write(workdir: epath.Path, contents: Mapping[str, bytes], outdated: Collection[str]) -> None:
  """Replaces files of a run folder, in their order, and their digests.

  Meanwhile the digests of the old and of the new files both count, so a kill in between is not taken for damage.

  Args:
    workdir: the run folder.
    contents: name -> content.
    outdated: the names of files that are deleted afterwards, if an earlier call wrote them.

  Raises:
    RunError: the disk refuses it.
  """
  after = [f"{_digest(content)}  {name}\n" for name, content in contents.items()]
  with writing(workdir / FILE):
    own = listed(workdir)
    has_none = not (workdir / FILE).exists()  # as older versions left it
    gone = [name for name in outdated if (has_none or name in own) and (workdir / name).exists()]
    before = [
      f"{_digest(path.read_bytes())}  {name}\n" for name in [*contents, *gone] if (path := workdir / name).exists()
    ]
  write_atomically(workdir / FILE, "".join(dict.fromkeys(before + after)).encode())
  for name, content in contents.items():
    write_atomically(workdir / name, content)
  with writing(workdir):
    for name in gone:
      (workdir / name).unlink()
  write_atomically(workdir / FILE, "".join(after).encode())


def listed(workdir: epath.Path) -> set[str]:
  """The names of the files that `write` wrote."""
  try:
    lines = untrusted.read_bytes(workdir / FILE, _LARGEST).decode(errors="replace").splitlines()
  except FileNotFoundError:
    return set()
  return {match[2] for line in lines if (match := _LINE.fullmatch(line))}


def read(workdir: epath.Path, name: str, most: int, *, accept_edits: bool) -> bytes:
  """The content of a file that `write` wrote.

  Args:
    workdir: the run folder.
    name: the file's name.
    most: how many bytes it may have.
    accept_edits: the digests are not looked at.

  Raises:
    OSError: it cannot be read.
    InputError: it is too large, or not what was written.
  """
  for seconds in (0.0, *_SECONDS_BETWEEN_LOOKS):  # who trains there replaces file and digest one after the other
    time.sleep(seconds)
    content = untrusted.read_bytes(workdir / name, most)
    if accept_edits or _is_as_written(workdir, name, content):
      return content
  raise InputError(
    f"{workdir / name} is not the file whose digest is in {FILE}: it was damaged, or edited by hand; "
    "copy it back, or, if it is as you want it, give --accept-edits (in Python runs.open(workdir, accept_edits=True))"
  )


def _is_as_written(workdir: epath.Path, name: str, content: bytes) -> bool:
  path = workdir / FILE
  try:
    lines = untrusted.read_bytes(path, _LARGEST).decode(errors="replace").splitlines()
  except FileNotFoundError:
    return True
  except OSError as error:
    raise InputError(f"{os.fspath(path)} cannot be read: {error.strerror or error}") from error
  for number, line in enumerate(lines, 1):
    if not _LINE.fullmatch(line):
      raise InputError(
        f"{path}, line {number}, is no digest of a file, so that the file was damaged: copy it back, or, "
        "if the other files are as you want them, give --accept-edits (in Python runs.open(workdir, accept_edits=True))"
      )
  return f"{_digest(content)}  {name}" in lines


def _digest(content: bytes) -> str:
  return hashlib.sha256(content).hexdigest()
