"""Batches whose rows are packed part by part, in the background, while the steps go on.

A part is an epoch if its sentences have other pieces in each epoch, or a shard if the text is packed in shards. The
rows of a part are a pure function of the seed and the part's number, and so is their order. The parts follow one
another without a gap: step s reads the rows from s * size on. Parts have different numbers of rows, so the part of a
step follows from all earlier ones. A checkpoint therefore holds the part and its first row, and a resumed run packs
only what it reads.
"""

import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

import numpy as np

from transformer_jax.data.batches import HostBatches
from transformer_jax.data.row_cache import PackedRows
from transformer_jax.runtime.errors import writing
from transformer_jax.runtime.progress import say

# The number of a part, from 0 -> its rows, `[rows, parts, row_length]` at a time.
PackPart = Callable[[int], Iterable[np.ndarray]]

_ORDER = 2  # the place in Philox' counter of the order of rows; 0 and 1 are those of the pieces
_SECONDS_TO_MENTION = 1.0
_SECONDS_TO_STOP = 0.1  # between two looks at whether the run is to end


class _Part(NamedTuple):
  """The rows of one part.

  Attributes:
    number: the number of the part, from 0.
    first: the number of rows in all parts before it.
    rows: `[rows, parts, row_length]`, on the disk.
    order: `[rows]`, the indices in `rows` in the order in which they are read.
  """

  number: int
  first: int
  rows: np.ndarray
  order: np.ndarray

  @property
  def end(self) -> int:
    """The number of rows up to its end."""
    return self.first + len(self.rows)


class BatchesPackedAhead(HostBatches):
  """Batches of rows that are packed during the run; steps are read in ascending order.

  Args:
    pack: packs the rows of a part, which may have none; it is called in another thread, part by part.
    folder: where the rows of the parts in use are kept, in files without a name, which the system deletes.
    packed, size, multiple, host, hosts: as in `HostBatches`.
    seed: the seed of the order of each part.
  """

  def __init__(
    self,
    pack: PackPart,
    folder: Path,
    packed: PackedRows,
    size: int,
    seed: int,
    *,
    multiple: int = 1,
    host: int = 0,
    hosts: int = 1,
  ):
    super().__init__(packed, size, multiple=multiple, host=host, hosts=hosts)
    self._pack, self._folder, self._seed = pack, folder, seed
    self._thread, self._closed = ThreadPoolExecutor(1, "packing"), threading.Event()
    self._parts: list[_Part] = []  # those of the last batch
    self._unread = 0, 0  # the number of the first part that is not among them, and the rows before it
    self._ahead: Future[np.ndarray] | None = None  # its rows, which are packed meanwhile
    self._waits_since: float | None = None
    self._is_first, self._mentioned = True, False  # the first part cannot be packed ahead

  def begin_at(self, place: Mapping[str, float]) -> None:
    """Before the first batch: begins with the part that `place` gave, or with the first one without a place."""
    self._unread = (int(place["part"]), int(place["first_row"])) if "part" in place else (0, 0)

  def place(self, step: int) -> dict[str, int]:
    """The part of the next step to read, for a checkpoint."""
    found = ((part.number, part.first) for part in self._parts if step * self._size < part.end)
    number, first = next(found, self._unread)
    return {"part": number, "first_row": first}

  def describe(self, step: int) -> str:
    return f"rows {step * self._size} to {(step + 1) * self._size - 1} of all that are packed during the run"

  def has(self, step: int) -> bool:
    return (step + 1) * self._size <= self._unread[1]

  def wait(self, step: int, is_stopped: Callable[[], bool]) -> bool:
    """Waits until the rows of a step are packed; false if `is_stopped` is true before."""
    while not self.has(step):
      part = self._next(is_stopped)
      if part is None:
        return False
      self._parts.append(part)
    return True

  def _rows_at(self, step: int, indices: np.ndarray) -> np.ndarray:
    first, end = step * self._size, (step + 1) * self._size
    self.wait(step, lambda: False)
    self._parts = [part for part in self._parts if part.end > first]
    rows = np.concatenate(
      [part.rows[part.order[max(0, first - part.first) : end - part.first]] for part in self._parts]
    )
    return rows[indices]

  def close(self) -> None:
    """Ends the packing; the rows of the last part are no longer needed."""
    self._closed.set()
    self._thread.shutdown(cancel_futures=True)

  def _next(self, is_stopped: Callable[[], bool]) -> _Part | None:
    """The first unread part; the next one is packed from now on. None if `is_stopped` before the part is packed."""
    number, first = self._unread
    self._ahead = packed = self._ahead or self._thread.submit(self._to_disk, number)
    if self._waits_since is None:  # one wait may be several calls
      self._waits_since = time.perf_counter()
    while not packed.done():
      if is_stopped():
        return None
      wait([packed], _SECONDS_TO_STOP)
    rows = packed.result()
    self._mention(time.perf_counter() - self._waits_since)
    self._waits_since = None
    self._unread = number + 1, first + len(rows)
    self._ahead = self._thread.submit(self._to_disk, number + 1)
    generator = np.random.Philox(key=[self._seed, number], counter=[0, 0, 0, _ORDER])
    return _Part(number, first, rows, np.argsort(generator.random_raw(len(rows)), kind="stable"))

  def _mention(self, seconds: float) -> None:
    if self._is_first:
      self._is_first = False
    elif seconds > _SECONDS_TO_MENTION and not self._mentioned:
      self._mentioned = True
      say(f"the next rows were not packed in time: the update waited {seconds:.1f} seconds for them")

  def _to_disk(self, number: int) -> np.ndarray:
    """The rows of a part; those of a batch or more are memory-mapped."""
    with writing(self._folder):
      self._folder.mkdir(parents=True, exist_ok=True)
      with tempfile.TemporaryFile(dir=self._folder) as file:
        count = 0
        for rows in self._pack(number):
          file.write(rows.tobytes())
          count += len(rows)
          if self._closed.is_set():
            break
        file.flush()
        shape = count, *self._shape
        if count < self._size:  # each map keeps a file open, and a batch may have many such parts
          file.seek(0)
          return np.frombuffer(file.read(), self._dtype).reshape(shape)
        return np.memmap(file, self._dtype, "r", shape=shape)
