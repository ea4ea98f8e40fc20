"""Batches of packed rows, in one global order of the rows.

The rows of a step's batch are a pure function of the seed and the step. So a resumed run simply starts at its step, on
any number of devices and hosts. `packed_ahead` has batches of rows that are packed during the run.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from transformer_jax.data.row_cache import PackedRows

Array = TypeVar("Array")  # NumPy's or JAX's


class Batch(NamedTuple, Generic[Array]):
  """The rows of one step, as NumPy or JAX arrays.

  Attributes:
    rows: `[rows, parts, row_length]` unsigned integers; `packing` tells the layout for sentence pairs.
    indices: `[rows]` int32, each row's index in the batch over all hosts; dropout keys are derived from it.
  """

  rows: Array
  indices: Array


class HostBatches:
  """The batch of every step, for this host: `batches[step]`.

  Args:
    packed: has the shape and the type of a row.
    size: the rows of a batch over all hosts.
    multiple: a batch is filled up with empty rows to a multiple of this, so
      that any number of devices shares the same batch.
    host, hosts: this host gets the `host`-th of `hosts` equal shares of a batch.
  """

  def __init__(self, packed: PackedRows, size: int, *, multiple: int = 1, host: int = 0, hosts: int = 1):
    padded = -(-size // multiple) * multiple
    self._size, self._shape, self._dtype = size, packed.rows.shape[1:], packed.rows.dtype
    self._indices = np.arange(padded, dtype=np.int32)[host * padded // hosts : (host + 1) * padded // hosts]

  def __getitem__(self, step: int) -> Batch[np.ndarray]:
    batch, real = self.empty(), self._indices < self._size
    batch.rows[real] = self._rows_at(step, self._indices[real])
    return batch

  def _rows_at(self, step: int, indices: np.ndarray) -> np.ndarray:
    """The rows at these indices of a step's batch over all hosts."""
    raise NotImplementedError

  def describe(self, step: int) -> str:
    """The rows of a step's batch, in words."""
    raise NotImplementedError

  def empty(self) -> Batch[np.ndarray]:
    """A batch of empty rows."""
    return Batch(np.zeros((len(self._indices), *self._shape), self._dtype), self._indices.copy())

  def place(self, step: int) -> dict[str, int]:
    """What a checkpoint must hold to read on from a step, besides its number."""
    return {}

  def begin_at(self, place: Mapping[str, float]) -> None:
    """Before the first batch: begins where `place` of an earlier process ended."""

  def has(self, step: int) -> bool:
    """Whether the rows of a step need no waiting; on all hosts alike."""
    return True

  def wait(self, step: int, is_stopped: Callable[[], bool]) -> bool:
    """Waits until the rows of a step are there; false if `is_stopped` is true before."""
    return True

  def close(self) -> None:
    """Ends what works in the background."""


class Batches(HostBatches):
  """Batches of rows that are all there.

  Args:
    packed: all rows of the corpus.
    size, multiple, host, hosts: as in `HostBatches`.
    seed: the seed of the order; each epoch has another order.
  """

  def __init__(self, packed: PackedRows, size: int, seed: int, *, multiple: int = 1, host: int = 0, hosts: int = 1):
    import grain  # takes a third of a second with orbax, which translating may not need

    super().__init__(packed, size, multiple=multiple, host=host, hosts=hosts)
    self._rows = packed.rows
    self._order = grain.MapDataset.range(len(packed.rows)).seed(seed).shuffle().repeat().batch(size)

  def rows_of(self, step: int) -> np.ndarray:
    """The indices, from 0, of the rows in the step's batch over all hosts."""
    return np.asarray(self._order[step])

  def describe(self, step: int) -> str:
    rows = self.rows_of(step).tolist()
    more = f" and {len(rows) - 8} more" if len(rows) > 8 else ""
    return f"rows {', '.join(map(str, rows[:8]))}{more} of the packed text"

  def _rows_at(self, step: int, indices: np.ndarray) -> np.ndarray:
    return self._rows[self.rows_of(step)[indices]]


def in_order(packed: PackedRows, size: int) -> Iterator[Batch[np.ndarray]]:
  """Batches of all rows, each row once, for evaluation; the last batch is filled up with empty rows."""
  for start in range(0, len(packed.rows), size):
    some = packed.rows[start : start + size]
    rows = np.zeros((size, *some.shape[1:]), some.dtype)
    rows[: len(some)] = some
    yield Batch(rows, np.arange(size, dtype=np.int32))
