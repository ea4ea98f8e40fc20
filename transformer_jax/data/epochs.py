"""Batches whose rows are packed anew in each epoch, in the background, because its sentences have other pieces.

The rows of an epoch are a pure function of the seed and the epoch, and so is their order. The epochs follow one another
without a gap: step s reads the rows from s * size on. Epochs have different numbers of rows, so the epoch of a step
follows from all earlier ones. A checkpoint therefore holds the epoch and its first row, and a resumed run packs only
what it reads.
"""

import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from transformer_jax.data.pipeline import Batch, Share
from transformer_jax.runtime.errors import RunError, writing
from transformer_jax.runtime.progress import say

# The number of an epoch, from 0 -> its rows, `[rows, parts, row_length]` at a time.
PackEpoch = Callable[[int], Iterable[np.ndarray]]

_ORDER = 2  # the place in Philox' counter of the order of rows; 0 and 1 are those of the pieces
_SECONDS_TO_MENTION = 1.0


class _Epoch(NamedTuple):
  """The rows of one epoch.

  Attributes:
    number: the number of the epoch, from 0.
    first: the number of rows in all epochs before it.
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


class EpochBatches:
  """The batch of every step, for this host: `batches[step]`; steps are read in ascending order.

  Args:
    pack: packs the rows of an epoch; it is called in another thread.
    folder: where the rows of two epochs are kept, in files without a name, which the system deletes.
    seed: as in `pipeline.Batches`.
    share: this host's share of each batch.

  Attributes:
    waited: the seconds for which steps waited for an epoch that was not packed yet, except for the first.
  """

  def __init__(self, pack: PackEpoch, folder: Path, seed: int, share: Share):
    self._pack, self._folder, self._seed, self._share, self._size = pack, folder, seed, share, share.size
    self._thread, self._closed = ThreadPoolExecutor(1, "epochs"), threading.Event()
    self._ahead: tuple[int, Future[np.ndarray]] | None = None
    self._epochs: list[_Epoch] = []  # the current one, and the next if a batch has rows of both
    self._unread = 0, 0  # the number of the first epoch that is not among them, and the rows before it
    self.waited = 0.0

  def begin_at(self, place: Mapping[str, float]) -> None:
    """Begins with the epoch that `place` gave."""
    self._unread = int(place["epoch"]), int(place["first_row"])

  def place(self, step: int) -> dict[str, int]:
    """The epoch of the next step to read, for a checkpoint."""
    found = ((epoch.number, epoch.first) for epoch in self._epochs if step * self._size < epoch.end)
    number, first = next(found, self._unread)
    return {"epoch": number, "first_row": first}

  def describe(self, step: int) -> str:
    """The rows of a step's batch, in words."""
    return f"rows {step * self._size} to {(step + 1) * self._size - 1} of those with random pieces"

  def __getitem__(self, step: int) -> Batch[np.ndarray]:
    first, end = step * self._size, (step + 1) * self._size
    while self._unread[1] < end:
      self._epochs.append(self._next())
    self._epochs = [epoch for epoch in self._epochs if epoch.end > first]
    rows = np.concatenate(
      [epoch.rows[epoch.order[max(0, first - epoch.first) : end - epoch.first]] for epoch in self._epochs]
    )
    return self._share.batch(rows.__getitem__)

  def close(self) -> None:
    """Ends the packing; the rows of the last epoch are no longer needed."""
    self._closed.set()
    self._thread.shutdown(cancel_futures=True)

  def _next(self) -> _Epoch:
    """The first unread epoch; the one behind it is packed from now on."""
    number, first = self._unread
    known = self._ahead is not None and self._ahead[0] == number
    future = self._ahead[1] if known and self._ahead else self._thread.submit(self._to_disk, number)
    start = time.perf_counter()
    rows = future.result()
    if known:
      self._mention(number, time.perf_counter() - start)
    self._unread = number + 1, first + len(rows)
    self._ahead = number + 1, self._thread.submit(self._to_disk, number + 1)
    generator = np.random.Philox(key=[self._seed, number], counter=[0, 0, 0, _ORDER])
    return _Epoch(number, first, rows, np.argsort(generator.random_raw(len(rows)), kind="stable"))

  def _mention(self, number: int, seconds: float) -> None:
    if seconds > _SECONDS_TO_MENTION > self.waited:
      say(f"the rows of epoch {number + 1} were not packed in time: the update waited {seconds:.1f} seconds for them")
    self.waited += seconds

  def _to_disk(self, number: int) -> np.ndarray:
    """The rows of an epoch, memory-mapped."""
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
        if not count:
          raise RunError(f"no sentence pair is left in epoch {number + 1}: was the text changed during the run?")
        return np.memmap(file, self._share.dtype, "r", shape=(count, *self._share.shape))
