"""Sentences with labels, from lines `LABEL<TAB>SENTENCE`, one per row.

A row is [CLS] sentence [SEP] in the three arrays of `data.next_sentence`: tokens, token types (1, or 0 for padding),
and the number of the class.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from transformer_jax.config import DataConfig
from transformer_jax.data import fingerprint
from transformer_jax.data.documents import require_text_files
from transformer_jax.data.encoding import in_batches
from transformer_jax.data.next_sentence import LABEL, PARTS, TOKEN_TYPES, TOKENS
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.row_cache import PackedRows, cached_rows
from transformer_jax.data.text import digest, existing, lines_of, require_no_pipe
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.model.special_tokens import CLS, SEP
from transformer_jax.runtime.errors import InputError, one_line

_FORMAT = "classes 1"  # the version of the cached rows; it changes when their meaning does


def read(data: DataConfig, which: str, classes: Sequence[str]) -> Iterator[tuple[int, str]]:
  """The class' number and the sentence of each line of the file `which`.

  Raises:
    InputError: `which` is no file, or a line has no tab or a label that is not in `classes`.
  """
  path = _file(data, which)
  numbers = {name: number for number, name in enumerate(classes)}
  for number, line in enumerate(lines_of(path), 1):
    label, tab, sentence = line.partition("\t")
    if not tab:
      raise InputError(f"{path}, line {number}: no tab; each line must be LABEL<TAB>SENTENCE")
    if label not in numbers:
      shown = label if len(label) <= 40 else f"{label[:37]}..."  # it is a sentence if the columns are swapped
      raise InputError(
        f"{path}, line {number}: the label {shown!r} is not one of config.model.labels = "
        f"{one_line(','.join(classes), 300)}: name all labels of all files there"
      )
    yield numbers[label], sentence


def packed_rows(data: DataConfig, which: str, classes: list[str], tokenizer: Tokenizer) -> PackedRows:
  """The sentences of the file `which`, one per row; the first call packs them, later calls read them from the cache.

  Raises:
    InputError: the file has no sentences or a malformed line, or the cache cannot be written.
  """
  path, dtype = _file(data, which), tokenizer.row_type
  shortened = "sentences longer than their row, of which it holds only the beginning"

  def content() -> str:
    return fingerprint.of_values(_FORMAT, digest(path), classes, tokenizer.fingerprint(), data.row_length)

  def pack(report: PackingReport) -> Iterator[np.ndarray]:
    for examples in in_batches(read(data, which, classes), lambda example: len(example[1])):
      rows, cut = sentence_rows(tokenizer, [sentence for _, sentence in examples], data.row_length)
      report.rows += len(rows)
      report.tokens += int(np.sum(rows[:, TOKEN_TYPES] > 0))
      report.left_out[shortened] = report.left_out.get(shortened, 0) + sum(cut)
      rows[:, LABEL] = np.array([label for label, _ in examples])[:, None]
      yield rows.astype(dtype)
    if not report.rows:
      raise InputError(f"{path} is empty: expected lines LABEL<TAB>SENTENCE")
    report.found["sentences"] = report.rows

  return cached_rows(data, content, pack, (PARTS, data.row_length), dtype)


def sentence_rows(tokenizer: Tokenizer, sentences: list[str], row_length: int) -> tuple[np.ndarray, list[bool]]:
  """Rows `[sentences, 3, row_length]` without labels, and whether each holds only the beginning of its sentence."""
  rows = np.zeros((len(sentences), PARTS, row_length), np.int64)
  encoded = tokenizer.encode_batch(sentences)
  for row, tokens in zip(rows, encoded, strict=True):
    whole = [CLS, *tokens[: row_length - 2], SEP]
    row[TOKENS, : len(whole)] = whole
    row[TOKEN_TYPES, : len(whole)] = 1
  return rows, [len(tokens) > row_length - 2 for tokens in encoded]


def _file(data: DataConfig, which: str) -> str:
  require_text_files(data)
  if not which.strip():
    raise InputError("the sentences to read have an empty name: set config.data.train to a file")
  if ";" in which:
    raise InputError(f"the sentences to read are {which!r}, but a classifier reads one file: write them to one")
  require_no_pipe([existing(which.strip())])
  return which.strip()
