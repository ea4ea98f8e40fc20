"""Packed rows on disk: made once, then memory-mapped and checked.

A folder `rows/FINGERPRINT` has two files: `rows.bin` holds the rows, `report.json` holds the report of the packing and
a CRC-32 of both. Each time the rows are opened, the CRC-32 is computed again and compared, which reads all rows once.
"""

import dataclasses
import json
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from transformer_jax.config import DataConfig
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.runtime.errors import InputError, RunError, write_error
from transformer_jax.runtime.file_locks import lock
from transformer_jax.runtime.files import expanded, user_cache
from transformer_jax.runtime.progress import Progress, say

_ROWS, _REPORT = "rows.bin", "report.json"
_BLOCK = 1 << 20


class Rows(Protocol):
  """Rows that need not be in memory, `[rows, parts, row_length]`: those of an array or of `data/prepared.py`."""

  @property
  def shape(self) -> tuple[int, ...]: ...

  @property
  def dtype(self) -> np.dtype: ...

  def __len__(self) -> int: ...

  def __getitem__(self, numbers: np.ndarray | slice, /) -> np.ndarray: ...


@dataclass(frozen=True)
class PackedRows:
  """A packed corpus."""

  rows: Rows  # [rows, parts, row_length]
  report: PackingReport
  fingerprint: str


def cached_rows(
  data: DataConfig,
  content: Callable[[], str],
  pack: Callable[[PackingReport], Iterable[np.ndarray]],
  shape: tuple[int, int],
  dtype: type,
) -> PackedRows:
  """Packed rows from the cache; they are made at the first call, and again if they are damaged.

  Args:
    data: the config of the data; it has the cache's folder.
    content: computes a fingerprint of all that the rows depend on; again after the packing, as the text may change.
    pack: a function that yields the rows, `[rows, *shape]` at a time, and fills in the empty report that it is given.
    shape, dtype: those of a row.

  Raises:
    InputError: the cache cannot be written, the text changes meanwhile, or `pack` raises it.
    RunError: the disk is full, or the rows read differ from those written.
  """
  name = content()
  folder = cache_of(data) / name

  def load() -> PackedRows | None:
    read = _read(folder, shape, dtype)
    return read and PackedRows(*read, name)

  def fill(temporary: Path) -> None:
    _pack_into(temporary, pack)
    if content() != name:
      raise InputError("the text changed while it was packed: give the command again")

  packed = load()
  if packed is None:
    _publish(folder, lambda: load() is not None, fill)
    packed = load()
  if packed is None:
    raise RunError(f"the packed rows in {folder} are not what was just written: check the disk")
  return packed


def cache_of(data: DataConfig) -> Path:
  """The folder of all packed rows.

  Raises:
    InputError: it would be in a bucket.
  """
  if "://" in data.cache_dir:
    raise InputError(
      f"config.data.cache_dir is {data.cache_dir}, but rows are read in place: give a folder on this machine"
    )
  return (expanded(data.cache_dir) if data.cache_dir else user_cache()) / "rows"


def _publish(folder: Path, is_complete: Callable[[], bool], fill: Callable[[Path], None]) -> None:
  """Fills a temporary folder and renames it, so that a half-written folder is never read.

  If several processes share the cache, as on one machine, one of them fills the folder and the others wait.
  """
  try:
    folder.parent.mkdir(parents=True, exist_ok=True)
    # The lock file is never deleted, as another process may be waiting for it.
    file = folder.with_suffix(".lock").open("a")  # another mode would empty what it may link to
  except OSError as error:
    raise InputError(
      f"cannot write to {folder.parent}: {error.strerror}; set config.data.cache_dir to a folder that can be written"
    ) from error
  try:
    with file:
      alone = lock(file)  # without locks all processes do the work
      if not is_complete():  # another process may have been first
        _replace(folder, is_complete, fill, alone)
  except OSError as error:
    if not is_complete():  # without locks another process may have been first
      raise write_error(f"packed rows to {folder}", error) from error


def _replace(folder: Path, is_complete: Callable[[], bool], fill: Callable[[Path], None], alone: bool) -> None:
  """Makes the folder or replaces a damaged one; `alone`: no other process can be at work, so leftovers are deleted."""
  if folder.exists():
    say(f"the packed rows in {folder} are damaged, or of an older version: packing them again")
  for left in folder.parent.glob(f"{folder.name}.*/") if alone else ():
    shutil.rmtree(left, ignore_errors=True)
  temporary = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
  try:
    new, old = temporary / "new", temporary / "old"
    new.mkdir()
    fill(new)
    if folder.exists() and not is_complete():
      folder.rename(old)
    if not folder.exists():
      new.rename(folder)
  finally:
    shutil.rmtree(temporary, ignore_errors=True)


def _pack_into(folder: Path, pack: Callable[[PackingReport], Iterable[np.ndarray]]) -> None:
  crc, report = 0, PackingReport()
  with open(folder / _ROWS, "wb") as file, Progress("row") as progress:
    for rows in pack(report):
      content = rows.tobytes()
      crc = zlib.crc32(content, crc)
      file.write(content)
      progress.update(len(rows))
  values = dataclasses.asdict(report)
  (folder / _REPORT).write_text(json.dumps({"report": values, "crc32": _with_report(crc, values)}))


def _read(folder: Path, shape: tuple[int, int], dtype: type) -> tuple[np.ndarray, PackingReport] | None:
  """The rows and their report; None if they are missing or damaged."""
  try:
    values = json.loads((folder / _REPORT).read_bytes())
    if values["crc32"] != _with_report(_crc32(folder / _ROWS), values["report"]):
      return None
    report = PackingReport(**values["report"])
    return np.memmap(folder / _ROWS, dtype, "r", shape=(report.rows, *shape)), report
  except (OSError, ValueError, TypeError, KeyError, RecursionError):
    return None


def _crc32(path: Path) -> int:
  crc = 0
  with path.open("rb") as file:
    while block := file.read(_BLOCK):
      crc = zlib.crc32(block, crc)
  return crc


def _with_report(crc: int, values: object) -> int:
  """The CRC-32 of the rows, continued over the report."""
  return zlib.crc32(json.dumps(values).encode(), crc)
