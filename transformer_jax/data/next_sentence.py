"""Rows of two texts: the second follows the first or comes from elsewhere (Devlin et al. 2019, §3.1 and A.1).

A row is [CLS] A [SEP] B [SEP] in three arrays: the tokens, the token types (1 for A, 2 for B, 0 for padding) and the
label. The label is the same at every position: 1 if B follows A, else 0.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import numpy as np

from transformer_jax.config import Config, Document
from transformer_jax.data import fingerprint
from transformer_jax.data.documents import join_lines, line_feed, open_text
from transformer_jax.data.encoding import gathered, in_batches
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.row_cache import PackedRows, cached_rows
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.model.special_tokens import CLS, SEP
from transformer_jax.runtime.errors import InputError

TOKENS, TOKEN_TYPES, LABEL = range(3)
PARTS = 3

_FORMAT = "next 2"  # the version of the cached rows; it changes when their meaning does
_SHORTER = 0.1  # the share of rows with fewer tokens than fit, so that the model sees short texts too
_AT_ONCE = 1024  # rows that are yielded together

Text = Sequence[Sequence[int] | np.ndarray]  # the tokens of a document's lines


def packed_rows(config: Config, which: str, tokenizer: Tokenizer) -> PackedRows:
  """The text `which` as pairs; the first call makes them, later calls read them from the cache.

  Raises:
    InputError: there is no text, rows are too short, or the cache cannot be written.
  """
  data = config.data
  if data.row_length < 8:
    raise InputError(
      f"config.data.row_length is {data.row_length}, but two texts and three special tokens need at least 8"
    )
  text = open_text(data, which)
  dtype = tokenizer.row_type

  def content() -> str:
    return fingerprint.of_values(_FORMAT, text.fingerprint(), tokenizer.fingerprint(), data.row_length)

  def pack(report: PackingReport) -> Iterator[np.ndarray]:
    documents = [document for lines in text if len(document := Lines(lines, tokenizer, dtype))]
    _require_lines(documents, data.document, which)
    follow = all_cut = 0
    pairs = next_sentence_rows(documents, data.row_length, line_feed(tokenizer))
    for some in gathered(pairs, _AT_ONCE):
      rows = np.stack([row for row, _ in some])
      report.rows += len(rows)
      report.tokens += int(np.sum(rows[:, TOKEN_TYPES] > 0))
      follow += int(np.sum(rows[:, LABEL, 0]))
      all_cut += sum(cut for _, cut in some)
      yield rows.astype(dtype)
    report.found = {"pairs of texts": report.rows, "of them consecutive": follow, "documents": len(documents)}
    report.left_out = {"tokens cut off texts too long for their row": all_cut}

  return cached_rows(data, content, pack, (PARTS, data.row_length), dtype)


def _require_lines(documents: "Sequence[Lines]", kind: Document, which: str) -> None:
  """Raises InputError unless a document has two lines."""
  if not documents:
    raise InputError(f"{which} is empty: there is nothing to read")
  if max(map(len, documents)) < 2:
    wider = {Document.LINE: "'file' or 'paragraph'", Document.PARAGRAPH: "'file'"}.get(kind)
    raise InputError(
      f"no document of {which} has two lines, of which one could follow the other: "
      + (f"config.data.document is {kind.value!r}, set it to {wider}, or " if wider else "")
      + "give a text with more lines"
    )


class Lines(Sequence[np.ndarray]):
  """The tokens of a document's lines in one array, to save memory; blank lines are left out."""

  def __init__(self, lines: Iterable[str], tokenizer: Tokenizer, dtype: type):
    tokens, ends = [np.zeros(0, dtype)], [0]
    not_blank = (line for line in lines if line.strip())
    for texts in in_batches(not_blank, len):
      encoded = [line for line in tokenizer.encode_batch(texts) if line]  # an imported vocabulary may drop all of it
      tokens.append(np.fromiter(itertools.chain.from_iterable(encoded), dtype))
      ends += map(len, encoded)
    self._tokens, self._ends = np.concatenate(tokens), np.cumsum(ends)

  def __len__(self) -> int:
    return len(self._ends) - 1

  @overload
  def __getitem__(self, index: int) -> np.ndarray: ...

  @overload
  def __getitem__(self, index: slice) -> list[np.ndarray]: ...

  def __getitem__(self, index: int | slice) -> np.ndarray | list[np.ndarray]:
    if isinstance(index, slice):
      return [self[i] for i in range(*index.indices(len(self)))]
    return self._tokens[self._ends[index] : self._ends[index + 1]]


def next_sentence_rows(
  documents: Sequence[Text], row_length: int, separator: int | None
) -> Iterator[tuple[np.ndarray, int]]:
  """Rows of pairs, `[3, row_length]` each, and the number of tokens that were cut off each.

  A row takes lines of a document until it is full, and at least two. The lines
  before a random one of them are A. With probability 1/2 the rest is B; otherwise
  B is lines at a random place of another document, and the rest begins the next
  row. If a document has one line left, B is from another document. The same
  documents give the same rows.

  Args:
    documents: the tokens of each line of each document; no line is empty.
    row_length: the tokens of a row.
    separator: the token between two lines of a text; None is none.
  """
  generator = np.random.default_rng(0)
  room = row_length - 3
  for number, document in enumerate(documents):
    start = 0
    while start < len(document):
      target = room if generator.random() >= _SHORTER else int(generator.integers(2, room + 1))
      end = max(_end(document, start, target), min(start + 2, len(document)))
      middle = end if end - start == 1 else int(generator.integers(start + 1, end))
      first = join_lines(document[start:middle], separator)
      follows = middle < end and generator.random() < 0.5
      if follows:
        second = join_lines(document[middle:end], separator)
      else:
        second = join_lines(_elsewhere(documents, number, max(1, target - len(first)), generator), separator)
      cut = max(0, len(first) + len(second) - room)
      yield _row(*_cut(first, second, room, generator), follows, row_length), cut
      start = end if follows else middle


def _end(document: Text, start: int, target: int) -> int:
  """The end of the lines from `start` on that have `target` tokens with their separators, or of the document."""
  end, size = start + 1, len(document[start])
  while end < len(document) and size < target:
    size += 1 + len(document[end])
    end += 1
  return end


def _elsewhere(documents: Sequence[Text], number: int, target: int, generator: np.random.Generator) -> Text:
  """Lines at a random place of another document, or of the same one if there is no other."""
  other = int(generator.integers(len(documents) - 1)) if len(documents) > 1 else number
  document = documents[other + (other >= number and len(documents) > 1)]
  start = int(generator.integers(len(document)))
  return document[start : _end(document, start, target)]


def _cut(first: list[int], second: list[int], room: int, generator: np.random.Generator) -> tuple[list[int], list[int]]:
  """Cuts tokens off the longer text, each at a random end, until both fit."""
  first_start, first_end, second_start, second_end = 0, len(first), 0, len(second)
  while (first_end - first_start) + (second_end - second_start) > room:
    front = int(generator.random() < 0.5)
    if first_end - first_start > second_end - second_start:
      first_start, first_end = first_start + front, first_end - 1 + front
    else:
      second_start, second_end = second_start + front, second_end - 1 + front
  return first[first_start:first_end], second[second_start:second_end]


def _row(first: list[int], second: list[int], follows: bool, row_length: int) -> np.ndarray:
  row = np.zeros((PARTS, row_length), np.int64)
  border, end = len(first) + 2, len(first) + len(second) + 3
  row[TOKENS, :end] = [CLS, *first, SEP, *second, SEP]
  row[TOKEN_TYPES, :border], row[TOKEN_TYPES, border:end] = 1, 2
  row[LABEL] = follows
  return row
