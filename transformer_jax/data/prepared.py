"""Packed rows in a folder that `transformer-jax prepare` has written, for texts that are larger than a machine.

    manifest.json             what the rows were made with, the counts, and all shards
    tokenizer.model           the vocabulary; other files in its place, see `data/tokenizers.py`
    00000-00003.array_record  the rows of the fourth part of the first corpus

A record has the bytes of one row, `[4, row_length]`. So each row can be read by itself, and a host reads only the rows
of its share of a batch. The folder may come from a stranger: sizes are checked, and no file outside of it is opened.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from etils import epath

from transformer_jax.config import DataConfig
from transformer_jax.data import manifest, tokenizers
from transformer_jax.data.manifest import Shard
from transformer_jax.data.packing import PARTS, SOURCE, TARGET
from transformer_jax.data.row_cache import PackedRows
from transformer_jax.data.tokenizer import Tokenizer, row_type
from transformer_jax.runtime import untrusted
from transformer_jax.runtime.errors import InputError, RunError, first_line
from transformer_jax.runtime.files import path_of
from transformer_jax.runtime.process import allow_open_files


class PreparedRows:
  """The rows of all shards, `rows[numbers]`, each read from its file when it is asked for.

  Args:
    folder: the folder.
    shards: its files.
    row_length: the tokens of each side of a row.
    vocab_sizes: those of the tokenizer.

  Attributes:
    shape: `(rows, 4, row_length)`.
    dtype: the type of the rows.
  """

  def __init__(self, folder: epath.Path, shards: Sequence[Shard], row_length: int, vocab_sizes: Sequence[int]):
    import grain  # takes a third of a second with orbax

    allow_open_files(len(shards))
    self.shape = sum(shard.rows for shard in shards), PARTS, row_length
    self.dtype = np.dtype(row_type(vocab_sizes)).newbyteorder("<")
    self._folder, self._vocab_sizes = folder, (vocab_sizes[0], vocab_sizes[-1])
    files: Any = [_Instruction(str(folder / shard.name), 0, shard.rows, shard.rows) for shard in shards]
    self._source: Any = grain.sources.ArrayRecordDataSource(files)

  def __len__(self) -> int:
    return self.shape[0]

  def __getitem__(self, numbers: np.ndarray | slice) -> np.ndarray:
    """The rows with these numbers, `[numbers, 4, row_length]`.

    Raises:
      RunError: a file cannot be read or is damaged, or a record is no row of this vocabulary.
    """
    if isinstance(numbers, slice):
      numbers = np.arange(*numbers.indices(len(self)))
    try:
      # A host's share of a small batch may be empty, for which the library has an error.
      records = self._source.__getitems__(numbers.tolist()) if len(numbers) else []
    except (RuntimeError, ValueError) as error:
      raise RunError(f"cannot read the rows in {self._folder}: {first_line(error)}; copy its files again") from error
    if any(len(record) != self.dtype.itemsize * PARTS * self.shape[2] for record in records):
      raise RunError(f"{self._folder} has a record that is no row of {self.shape[2]} tokens: prepare the text anew")
    rows = np.frombuffer(b"".join(records), self.dtype).reshape(-1, *self.shape[1:])
    for part, size in zip((SOURCE, TARGET), self._vocab_sizes, strict=True):
      if rows[:, part].max(initial=0) >= size:
        raise RunError(f"{self._folder} has a token that is not of its vocabulary: prepare the text anew")
    return rows


class _Instruction(NamedTuple):
  """A whole file. ArrayRecord's data source that is told the number of rows opens a file when one is read."""

  filename: str
  skip: int
  take: int
  examples_in_shard: int


def folder_of(which: str) -> epath.Path:
  """The path of a prepared folder.

  Raises:
    InputError: it is in a bucket.
  """
  if "://" in which:
    raise InputError(
      f"{which} is in a bucket, where ArrayRecord cannot read: mount the bucket (docs/clusters.md), or copy the folder "
      "to a disk of each host"
    )
  return path_of(which)


def tokenizer_of(which: str, *vocab_sizes: int) -> Tokenizer:
  """The tokenizer of a prepared folder.

  Args:
    which: the folder.
    *vocab_sizes: those of the model's config.

  Raises:
    InputError: it is no such folder, its tokenizer is damaged, or has another size.
  """
  folder = folder_of(which)
  manifest.read(folder)

  def read(name: str, most: int) -> bytes:
    untrusted.own_file(folder, name)
    return untrusted.read_bytes(folder / name, most)

  found = tokenizers.load(folder, read)
  tokenizers.require_sizes(found, vocab_sizes, which)
  return found


def packed_rows(data: DataConfig, which: str, tokenizer: Tokenizer) -> PackedRows:
  """The rows of a prepared folder.

  Args:
    data: the config of the data, which must be that with which the folder was made.
    which: the folder.
    tokenizer: the run's tokenizer, which must be that of the folder.

  Raises:
    InputError: the folder is not whole, or was made with another config or vocabulary.
  """
  folder = folder_of(which)
  found = manifest.read(folder)
  for key, value in manifest.settings_of(data, tokenizer.fingerprint()).items():
    if found.settings[key] != value and key == "tokenizer":
      raise InputError(
        f"{which} was prepared with another vocabulary than that of this run: prepare the text anew with the run's as "
        "config.data.tokenizer"
      )
    if found.settings[key] != value:
      raise InputError(
        f"{which} was prepared with config.data.{key} = {found.settings[key]!r}, not {value!r}: set it to that, or "
        "prepare the text anew"
      )
  for shard in found.shards:
    path = untrusted.own_file(folder, shard.name)
    size = path.stat().length if path else None
    if size != shard.size:
      has = "is not there" if size is None else f"has {size:,} bytes in place of {shard.size:,}"
      raise InputError(f"{folder / shard.name} {has}: copy the folder again, or prepare the text anew")
  rows = PreparedRows(folder, found.shards, data.row_length, tokenizer.vocab_sizes)
  return PackedRows(rows, found.report(), found.fingerprint)
