"""A text that is packed shard by shard while it is read, so that the first step need not wait for all of it.

A shard has `data.shard_pairs` neighbouring pairs. The order of the shards is drawn for each epoch from the seed and the
epoch. Rows are shuffled only within their shard, but a batch may have rows of consecutive shards. No rows are kept, so
each epoch is encoded and packed again.
"""

from collections.abc import Callable, Iterator

import numpy as np

from transformer_jax.config import DataConfig
from transformer_jax.data import fingerprint, packing
from transformer_jax.data.packing import PARTS
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.row_cache import PackedRows
from transformer_jax.data.text import TextPairs, count_repeated
from transformer_jax.data.text_parts import TextPart, parts_of, read_part
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.progress import say
from transformer_jax.runtime.wording import counted

_FORMAT = 1  # the version of the rows and their order; it changes when their meaning does
_ORDER = 3  # the place in Philox' counter of the order of shards; others use 0 to 2


def not_packed_yet(data: DataConfig, tokenizer: Tokenizer) -> PackedRows:
  """What is known of the training text before it is packed: no rows, the number of pairs to read, and a fingerprint.

  Raises:
    InputError: a file cannot be read, the two files of a corpus differ in their number of lines, or one is compressed.
  """
  corpus = plain_text(data)
  shards = _shards(corpus, data.shard_pairs)
  content = fingerprint.of_values(
    "shards", _FORMAT, corpus.fingerprint(), tokenizer.fingerprint(), data.row_length, data.longest, data.shard_pairs
  )
  pairs = sum(count_repeated(shard.lines or 0, shard.weight, shard.first) for shard in shards)
  found = {"pairs, before any is left out": pairs, "shards, which are packed during the run": len(shards)}
  report = PackingReport(found=found, sides=2)
  return PackedRows(np.zeros((0, PARTS, data.row_length), tokenizer.row_type), report, content)


def packing_of_shards(data: DataConfig, tokenizer: Tokenizer, seed: int) -> Callable[[int], Iterator[np.ndarray]]:
  """A function that packs the rows of a shard; number n is shard n mod N of epoch n div N, where N is their number.

  What it leaves out in the first epoch is reported. A shard may have no rows.

  Raises:
    InputError: as `not_packed_yet`; while packing, no pair of an epoch is left.
  """
  shards = _shards(plain_text(data), data.shard_pairs)
  empty = 0  # the shards of this epoch without rows

  def pack(number: int) -> Iterator[np.ndarray]:
    nonlocal empty
    epoch, place = divmod(number, len(shards))
    empty = empty if place else 0
    shard = shards[_order(seed, epoch, len(shards))[place]]
    report = PackingReport()
    yield from packing.pack_pairs(read_part(shard), tokenizer, data, report)
    if not epoch:
      _report(shard, report)
    empty += not report.rows
    if empty == len(shards):
      raise InputError(
        f"no sentence pair of {data.train} is left: check the text, or raise config.data.max_length and "
        "config.data.row_length"
      )

  return pack


def plain_text(data: DataConfig) -> TextPairs:
  """The training text.

  Args:
    data: the config of the data.

  Raises:
    InputError: a file of it is missing, or compressed: reading cannot begin inside of it.
  """
  corpus = TextPairs(data.train, data.source_language, data.target_language)
  for file in corpus.files:
    if file.compressed:
      raise InputError(
        f"config.data.shard_pairs needs plain text, as a shard begins inside of a file: unpack {file.source} and "
        f"{file.target}, or leave it out"
      )
  return corpus


def _shards(corpus: TextPairs, most: int) -> list[TextPart]:
  return [shard for number, file in enumerate(corpus.files) for shard in parts_of(number, file, most)]


def _order(seed: int, epoch: int, shards: int) -> np.ndarray:
  """The shards of an epoch in the order in which they are read."""
  generator = np.random.Philox(key=[seed, epoch], counter=[0, 0, 0, _ORDER])
  return np.argsort(generator.random_raw(shards), kind="stable")


def _report(shard: TextPart, report: PackingReport) -> None:
  if missing := report.missing():
    assert shard.lines is not None
    lines = f"lines {shard.first + 1:,} to {shard.first + shard.lines:,} of {shard.source}"
    say(f"{lines}: {', '.join([counted(report.found['pairs'], 'pairs'), *missing])}")
