"""Batches of packed rows, in one global order of the rows.

The rows of a step's batch are a pure function of the seed and the step. So a resumed run simply starts at its step, on
any number of devices and hosts.
"""

from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from transformer_jax.data.row_cache import PackedRows

Array = TypeVar("Array")  # NumPy's or JAX's


class Batch(NamedTuple, Generic[Array]):
  """The rows of one step, as NumPy or JAX arrays.

  Attributes:
    rows: `[rows, parts, row_length]` unsigned integers; `packing` tells the layout for sentence pairs.
    places: `[rows]` int32, each row's index in the batch over all hosts; dropout keys are derived from it.
  """

  rows: Array
  places: Array


class Batches:
  """The batch of every step, for this host: `batches[step]`.

  Args:
    packed: all rows of the corpus.
    size: the rows of a batch over all hosts.
    seed: the seed of the order; each epoch has another order.
    multiple: a batch is filled up with empty rows to a multiple of this, so
      that any number of devices shares the same batch.
    host, hosts: this host gets the `host`-th of `hosts` equal shares of a batch.
  """

  def __init__(self, packed: PackedRows, size: int, seed: int, *, multiple: int = 1, host: int = 0, hosts: int = 1):
    import grain  # takes a third of a second with orbax, which translating may not need

    self._rows = packed.rows
    self._order = grain.MapDataset.range(len(packed.rows)).seed(seed).shuffle().repeat().batch(size)
    self._share = Share(size, multiple, host, hosts, packed.rows.shape[1:], packed.rows.dtype)

  def rows_of(self, step: int) -> np.ndarray:
    """The indices, from 0, of the rows in the step's batch over all hosts."""
    return np.asarray(self._order[step])

  def describe(self, step: int) -> str:
    """The rows of a step's batch, in words."""
    rows = self.rows_of(step).tolist()
    return f"rows {', '.join(map(str, rows[:8]))}" + (f" and {len(rows) - 8} more" if len(rows) > 8 else "")

  def __getitem__(self, step: int) -> Batch[np.ndarray]:
    chosen = self.rows_of(step)
    return self._share.batch(lambda indices: self._rows[chosen[indices]])


class Share:
  """One host's share of each batch; the arguments are those of `Batches`, and the shape and type of a row."""

  def __init__(self, size: int, multiple: int, host: int, hosts: int, shape: tuple[int, ...], dtype: np.dtype):
    padded = -(-size // multiple) * multiple
    self.size, self.shape, self.dtype = size, shape, dtype
    self._indices = np.arange(padded, dtype=np.int32)[host * padded // hosts : (host + 1) * padded // hosts]

  def batch(self, gather: Callable[[np.ndarray], np.ndarray]) -> Batch[np.ndarray]:
    """A batch, filled up with empty rows; `gather` gives the rows at indices of the batch over all hosts."""
    batch = self.empty()
    real = self._indices < self.size
    batch.rows[real] = gather(self._indices[real])
    return batch

  def empty(self) -> Batch[np.ndarray]:
    """A batch of empty rows."""
    return Batch(np.zeros((len(self._indices), *self.shape), self.dtype), self._indices.copy())


def in_order(packed: PackedRows, size: int) -> Iterator[Batch[np.ndarray]]:
  """Batches of all rows, each row once, for evaluation; the last batch is filled up with empty rows."""
  for start in range(0, len(packed.rows), size):
    some = packed.rows[start : start + size]
    share = Share(len(some), multiple=size, host=0, hosts=1, shape=some.shape[1:], dtype=some.dtype)
    yield share.batch(some.__getitem__)
