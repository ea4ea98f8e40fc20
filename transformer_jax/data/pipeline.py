"""From a corpus to batches: tokens, packed rows on disk, and one global order of them.

Position = step: which rows make up the batch of a step is a pure function of
the seed and the step, so that to resume is to start at that step, on any
number of devices and hosts.
"""

import dataclasses
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import grain
import numpy as np

from transformer_jax.config import DataConfig
from transformer_jax.data import fingerprint, packing
from transformer_jax.data.corpus import open_corpus
from transformer_jax.data.packing import PackingReport
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.errors import InputError, RunError
from transformer_jax.paths import user_cache
from transformer_jax.progress import Progress

_FORMAT = 1  # of the cached rows; changes when their meaning does


class Batch(NamedTuple):
  """Rows of one step, as NumPy or JAX arrays.

  Attributes:
    rows: `[rows, parts, row_length]` unsigned integers; those of sentence pairs as `packing` lays them out.
    places: `[rows]` int32, each row's place in the batch over all hosts; it keys dropout.
  """

  rows: Any
  places: Any


@dataclass(frozen=True)
class PackedRows:
  """A packed corpus, memory-mapped."""

  rows: np.ndarray  # [rows, parts, row_length]
  report: Any
  fingerprint: str


def learn_tokenizer(data: DataConfig, vocab_size: int) -> Tokenizer:
  """One vocabulary for both sides of the training text, or the one that `data.tokenizer` names."""
  if data.tokenizer:
    return chosen_tokenizer(data.tokenizer, vocab_size)
  corpus = open_corpus(data, data.train)
  return Tokenizer.learn((side for pair in corpus for side in pair), vocab_size)


def chosen_tokenizer(path: str, vocab_size: int) -> Tokenizer:
  """A tokenizer of the user's.

  Raises:
    InputError: it cannot be read, or has another size than the model's vocabulary.
  """
  tokenizer = Tokenizer.load(path)
  if tokenizer.vocab_size != vocab_size:
    raise InputError(
      f"config.model.vocab_size is {vocab_size}, but {path} has {tokenizer.vocab_size} pieces: "
      f"set config.model.vocab_size={tokenizer.vocab_size}"
    )
  return tokenizer


def packed_rows(data: DataConfig, which: str, tokenizer: Tokenizer) -> PackedRows:
  """The packed rows of the corpus `which`, made at the first call and read from the cache after it.

  Raises:
    InputError: no pair is left, or the cache cannot be written.
  """
  corpus = open_corpus(data, which)
  content = fingerprint.of_values(_FORMAT, corpus.fingerprint(), tokenizer.fingerprint(), data.row_length, data.longest)
  report = PackingReport()

  def pack() -> Iterator[np.ndarray]:
    pairs = packing.encode_pairs(corpus, tokenizer, data.longest, report)
    for rows in packing.pack(pairs, data.row_length, row_type(tokenizer.vocab_size)):
      report.rows += len(rows)
      yield rows
    if not report.rows:
      raise InputError(
        f"no sentence pair of {corpus.name} is left: {report.empty} have an empty side and {report.too_long} are "
        f"longer than {data.longest} tokens; raise config.data.max_length and config.data.row_length"
      )

  return cached_rows(data, content, pack, report, (4, data.row_length), row_type(tokenizer.vocab_size))


def cached_rows(
  data: DataConfig,
  content: str,
  pack: Callable[[], Iterable[np.ndarray]],
  report: Any,
  shape: tuple[int, int],
  dtype: type,
) -> PackedRows:
  """Rows that are made at the first call and read from the cache after it.

  Args:
    data: says where the cache is.
    content: a fingerprint of all that the rows depend on.
    pack: makes them, `[rows, *shape]` at a time.
    report: a dataclass with a field `rows`, which `pack` fills in.
    shape: of a row.
    dtype: of the rows.

  Raises:
    InputError: the cache cannot be written; or one of `pack`.
  """
  folder = (Path(data.cache_dir).expanduser() if data.cache_dir else user_cache()) / "rows" / content
  if not folder.exists():
    _publish(folder, lambda temporary: _pack_into(temporary, pack, report))
  return _load(folder, type(report), shape, dtype, content)


def _publish(folder: Path, fill: Callable[[Path], None]) -> None:
  """Fills a folder under another name first, so that a half-written one is never read.

  Of several processes that share the cache, as those of one machine do, one fills it and the others wait.
  """
  try:
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Never deleted: that would pull it from under a process that waits for it.
    lock = folder.with_suffix(".lock").open("w")
  except OSError as error:
    raise InputError(
      f"cannot write to {folder.parent}: {error.strerror}; set config.data.cache_dir to a folder that can be written"
    ) from error
  try:
    with lock:
      alone = _lock(lock)
      if not folder.exists():
        _fill(folder, fill, alone)
  except OSError as error:
    if not folder.exists():  # another process may have been first, with the same content
      raise RunError(f"cannot write packed rows to {folder}: {error.strerror}") from error


def _lock(file: TextIO) -> bool:
  """Waits until no other process holds the file; false where the file system has no locks, and all do the work."""
  try:
    fcntl.flock(file, fcntl.LOCK_EX)
  except OSError:
    return False
  return True


def _fill(folder: Path, fill: Callable[[Path], None], alone: bool) -> None:
  """Where no other process can be at work, what a killed one has left behind is deleted."""
  for left in folder.parent.glob(f"{folder.name}.*/") if alone else ():
    shutil.rmtree(left, ignore_errors=True)
  temporary = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
  try:
    fill(temporary)
    os.replace(temporary, folder)
  finally:
    shutil.rmtree(temporary, ignore_errors=True)


def _pack_into(folder: Path, pack: Callable[[], Iterable[np.ndarray]], report: Any) -> None:
  with open(folder / "rows.bin", "wb") as file, Progress("row") as progress:
    for rows in pack():
      file.write(rows.tobytes())
      progress.update(len(rows))
  (folder / "report.json").write_text(json.dumps(dataclasses.asdict(report)))


def _load(folder: Path, report_type: type, shape: tuple[int, int], dtype: type, content: str) -> PackedRows:
  try:
    report = report_type(**json.loads((folder / "report.json").read_text()))
    rows = np.memmap(folder / "rows.bin", dtype, "r", shape=(report.rows, *shape))
  except (OSError, ValueError, TypeError) as error:
    raise RunError(f"the cached rows in {folder} are damaged: delete that folder and start again") from error
  return PackedRows(rows, report, content)


def row_type(vocab_size: int) -> type:
  """The type of the tokens in packed rows."""
  return np.uint16 if vocab_size <= 1 << 16 else np.uint32


class Batches:
  """The batch of every step: `batches[step]`, for this host.

  Args:
    packed: all rows of the corpus.
    size: rows of a batch over all hosts.
    seed: of the order; each epoch has another.
    multiple: the batch is filled up with empty rows to a multiple of this, so
      that any number of devices shares the same batch.
    host, hosts: this host's share is the `host`-th of `hosts` equal ones.
  """

  def __init__(self, packed: PackedRows, size: int, seed: int, *, multiple: int = 1, host: int = 0, hosts: int = 1):
    self._rows = packed.rows
    self._order = grain.MapDataset.range(len(packed.rows)).seed(seed).shuffle().repeat().batch(size)
    self._padded = -(-size // multiple) * multiple
    self._share = slice(host * self._padded // hosts, (host + 1) * self._padded // hosts)

  def rows_of(self, step: int) -> np.ndarray:
    """Which rows of the corpus, from 0, the step's batch has on all hosts."""
    return np.asarray(self._order[step])

  def __getitem__(self, step: int) -> Batch:
    chosen = self.rows_of(step)
    places = np.arange(self._padded, dtype=np.int32)[self._share]
    real = places < len(chosen)
    rows = np.zeros((len(places), *self._rows.shape[1:]), self._rows.dtype)
    rows[real] = self._rows[chosen[places[real]]]
    return Batch(rows, places)


def in_order(packed: PackedRows, size: int) -> list[Batch]:
  """All rows once, for evaluation; the last batch is filled up with empty rows."""
  batches = []
  for start in range(0, len(packed.rows), size):
    rows = np.zeros((size, *packed.rows.shape[1:]), packed.rows.dtype)
    some = packed.rows[start : start + size]
    rows[: len(some)] = some
    batches.append(Batch(rows, np.arange(size, dtype=np.int32)))
  return batches


def read_pairs(data: DataConfig, which: str, most: int | None = None) -> list[tuple[str, str]]:
  """The first `most` sentence pairs of a corpus as text."""
  pairs = []
  for pair in open_corpus(data, which):
    if len(pairs) == most:
      break
    pairs.append(pair)
  return pairs
