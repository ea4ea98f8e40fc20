"""The path of a corpus to batches: tokens, packed rows on disk, and one global order of the rows.

The rows of a step's batch are a pure function of the seed and the step. So a
resumed run simply starts at its step, on any number of devices and hosts.
"""

from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

import grain
import numpy as np

from transformer_jax.config import DataConfig
from transformer_jax.data import fingerprint, packing
from transformer_jax.data.corpus import open_corpus
from transformer_jax.data.packing import PARTS
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.row_cache import PackedRows, cached_rows
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.runtime.errors import InputError

Array = TypeVar("Array")  # NumPy's or JAX's

_FORMAT = 1  # the version of the cached rows; it changes when their meaning does


class Batch(NamedTuple, Generic[Array]):
  """The rows of one step, as NumPy or JAX arrays.

  Attributes:
    rows: `[rows, parts, row_length]` unsigned integers; `packing` tells the layout for sentence pairs.
    places: `[rows]` int32, each row's index in the batch over all hosts; dropout keys are derived from it.
  """

  rows: Array
  places: Array


def learn_tokenizer(data: DataConfig, vocab_size: int) -> Tokenizer:
  """One vocabulary for both sides of the training text, or the one that `data.tokenizer` names."""
  if data.tokenizer:
    return chosen_tokenizer(data.tokenizer, vocab_size)
  corpus = open_corpus(data, data.train)
  return Tokenizer.learn((side for pair in corpus for side in pair), vocab_size)


def chosen_tokenizer(path: str, vocab_size: int) -> Tokenizer:
  """The tokenizer in a file that the user chose.

  Raises:
    InputError: the file cannot be read, or its size is not that of the model's vocabulary.
  """
  tokenizer = Tokenizer.load(path)
  if tokenizer.vocab_size != vocab_size:
    raise InputError(
      f"config.model.vocab_size is {vocab_size}, but {path} has {tokenizer.vocab_size} pieces: "
      f"set config.model.vocab_size={tokenizer.vocab_size}"
    )
  return tokenizer


def packed_rows(data: DataConfig, which: str, tokenizer: Tokenizer) -> PackedRows:
  """The packed rows of the corpus `which`; the first call makes them, later calls read them from the cache.

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
        f"no sentence pair of {corpus.name} is left: {', '.join(report.missing()) or 'it has none'}; "
        "raise config.data.max_length and config.data.row_length"
      )

  return cached_rows(data, content, pack, report, (PARTS, data.row_length), row_type(tokenizer.vocab_size))


def row_type(vocab_size: int) -> type:
  """The type of the tokens in packed rows."""
  return np.uint16 if vocab_size <= 1 << 16 else np.uint32


class Batches:
  """The batch of every step: `batches[step]`, for this host.

  Args:
    packed: all rows of the corpus.
    size: the rows of a batch over all hosts.
    seed: the seed of the order; each epoch has another order.
    multiple: a batch is filled up with empty rows to a multiple of this, so
      that any number of devices shares the same batch.
    host, hosts: this host gets the `host`-th of `hosts` equal shares of a batch.
  """

  def __init__(self, packed: PackedRows, size: int, seed: int, *, multiple: int = 1, host: int = 0, hosts: int = 1):
    self._rows = packed.rows
    self._order = grain.MapDataset.range(len(packed.rows)).seed(seed).shuffle().repeat().batch(size)
    self._padded = -(-size // multiple) * multiple
    self._share = slice(host * self._padded // hosts, (host + 1) * self._padded // hosts)

  def rows_of(self, step: int) -> np.ndarray:
    """The indices, from 0, of the rows in the step's batch over all hosts."""
    return np.asarray(self._order[step])

  def __getitem__(self, step: int) -> Batch[np.ndarray]:
    chosen = self.rows_of(step)
    places = np.arange(self._padded, dtype=np.int32)[self._share]
    real = places < len(chosen)
    rows = np.zeros((len(places), *self._rows.shape[1:]), self._rows.dtype)
    rows[real] = self._rows[chosen[places[real]]]
    return Batch(rows, places)


def in_order(packed: PackedRows, size: int) -> list[Batch[np.ndarray]]:
  """Batches of all rows, each row once, for evaluation; the last batch is filled up with empty rows."""
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
