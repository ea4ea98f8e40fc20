"""From a corpus to batches: tokens, packed rows on disk, and one global order of them.

Position = step: which rows make up the batch of a step is a pure function of
the seed and the step, so that to resume is to start at that step, on any
number of devices and hosts.
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

_FORMAT = 1  # of the cached rows; changes when their meaning does


class Batch(NamedTuple, Generic[Array]):
  """Rows of one step, as NumPy or JAX arrays.

  Attributes:
    rows: `[rows, parts, row_length]` unsigned integers; those of sentence pairs as `packing` lays them out.
    places: `[rows]` int32, each row's place in the batch over all hosts; it keys dropout.
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

  def __getitem__(self, step: int) -> Batch[np.ndarray]:
    chosen = self.rows_of(step)
    places = np.arange(self._padded, dtype=np.int32)[self._share]
    real = places < len(chosen)
    rows = np.zeros((len(places), *self._rows.shape[1:]), self._rows.dtype)
    rows[real] = self._rows[chosen[places[real]]]
    return Batch(rows, places)


def in_order(packed: PackedRows, size: int) -> list[Batch[np.ndarray]]:
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
