"""The files of a prepared text: packed rows as records of an ArrayRecord file, one each."""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from array_record.python.array_record_module import ArrayRecordWriter
from etils import epath

from transformer_jax.data.manifest import Shard
from transformer_jax.runtime.errors import RunError, first_line, writing
from transformer_jax.runtime.files import temporary_beside

# A row by itself can be read; the fastest compression halves the size, and slower ones gain nothing more.
_OPTIONS = "group_size:1,zstd:1"


def write_shard(folder: epath.Path, name: str, blocks: Iterable[np.ndarray]) -> Shard | None:
  """Writes rows as one file, which gets its name when it is whole; writes nothing if there are no rows.

  Args:
    folder: the folder, which may be in a bucket.
    name: the file's name.
    blocks: the rows, `[rows, 4, row_length]` at a time.

  Raises:
    RunError: the file cannot be written.
  """
  temporary = temporary_beside(folder / name)
  with contextlib.ExitStack() as stack, writing(folder / name):
    path = temporary
    if "://" in os.fspath(folder):  # ArrayRecord writes to disks alone
      path = epath.Path(stack.enter_context(tempfile.TemporaryDirectory())) / name
    stack.callback(Path(path).unlink, missing_ok=True)
    rows, digest_of_rows = _write_rows(path, blocks)
    if not rows:
      return None
    size = Path(path).stat().st_size
    if path is not temporary:
      path.copy(temporary, overwrite=True)
    temporary.replace(folder / name)
  return Shard(name, rows, size, digest_of_rows)


def _write_rows(path: epath.Path, blocks: Iterable[np.ndarray]) -> tuple[int, str]:
  """Writes rows to a new file; returns how many they are, and their digest."""
  count, seen = 0, hashlib.blake2b(digest_size=16)
  try:
    writer = ArrayRecordWriter(str(path), _OPTIONS)
    try:
      for rows in blocks:
        rows = np.ascontiguousarray(rows, rows.dtype.newbyteorder("<"))
        seen.update(rows.data)
        count += len(rows)
        for row in rows:
          writer.write(row.tobytes())
    finally:
      writer.close()
  except RuntimeError as error:  # the library's own, for example for a full disk
    if isinstance(error, RunError):
      raise
    raise RunError(f"cannot write {path}: {first_line(error)}; make room, and give the command again") from error
  return count, seen.hexdigest()
