"""Contiguous blocks of text as packed rows: `[2, row_length]`, tokens and segments.

Documents follow one another without a gap. Segments tell the documents of a row apart; they are numbered from 1 in
each row. A document that does not end with its row continues in the next row as a new segment. Segment 0 is padding;
only the last row has it.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from transformer_jax.config import Config, Document
from transformer_jax.data import fingerprint, tokenizers
from transformer_jax.data.documents import Chunk, encode_documents, line_feed, open_text
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.row_cache import PackedRows, cached_rows
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.model.special_tokens import EOS
from transformer_jax.runtime.errors import InputError

TOKENS, SEGMENTS = range(2)
PARTS = 2

_FORMAT = "blocks 1"  # the version of the cached rows; it changes when their meaning does


def learn_tokenizer(config: Config) -> Tokenizer:
  """The vocabulary of the training text, or the one that `config.data.tokenizer` names."""
  if config.data.tokenizer:
    return tokenizers.chosen(config.data.tokenizer, config.model.vocab_size)
  lines = open_text(config.data, config.data.train).lines()
  return SentencePieceTokenizer.learn(lines, config.model.vocab_size, kind=config.data.pieces.value)


def packed_rows(config: Config, which: str, tokenizer: Tokenizer) -> PackedRows:
  """The text `which` in blocks; the first call makes them, later calls read them from the cache.

  Raises:
    InputError: there is no text, or the cache cannot be written.
  """
  data = config.data
  text = open_text(data, which)
  end = config.model.end_token
  dtype = tokenizer.row_type

  def content() -> str:
    values = (_FORMAT, text.fingerprint(), tokenizer.fingerprint(), data.row_length)
    apart = tokenizer.lines_apart or data.document is Document.LINE or line_feed(tokenizer) is None
    together = [] if apart else ["lines together"]
    return fingerprint.of_values(*values, *([] if end == EOS else [end]), *together)  # other caches stay valid

  def pack(report: PackingReport) -> Iterator[np.ndarray]:
    yield from pack_blocks(encode_documents(text, tokenizer, end), data.row_length, report, dtype)
    if not report.rows:
      raise InputError(f"{which} is empty: there is nothing to read")

  return cached_rows(data, content, pack, (PARTS, data.row_length), dtype)


def pack_blocks(chunks: Iterable[Chunk], row_length: int, report: PackingReport, dtype: type) -> Iterator[np.ndarray]:
  """Rows `[rows, 2, row_length]` of the documents' tokens, each with its `end` among them; `report` gets the counts."""
  report.found = {"documents": 0, "tokens": 0}
  tokens, documents = np.zeros(0, np.int64), np.zeros(0, np.int64)
  for chunk, ends in chunks:
    tokens = np.concatenate([tokens, chunk])
    documents = np.concatenate([documents, np.full(len(chunk), report.found["documents"])])
    report.found["documents"] += ends
    report.found["tokens"] += len(chunk)
    report.tokens += len(chunk)
    whole = len(tokens) - len(tokens) % row_length
    if whole:
      yield _rows(tokens[:whole], documents[:whole], row_length, report, dtype)
    tokens, documents = tokens[whole:], documents[whole:]
  if len(tokens):
    missing = row_length - len(tokens)
    rows = _rows(np.pad(tokens, (0, missing)), np.pad(documents, (0, missing)), row_length, report, dtype)
    rows[-1, SEGMENTS, -missing:] = 0
    yield rows


def _rows(tokens: np.ndarray, documents: np.ndarray, row_length: int, report: PackingReport, dtype: type) -> np.ndarray:
  tokens, documents = tokens.reshape(-1, row_length), documents.reshape(-1, row_length)
  new = np.diff(documents, axis=1, prepend=documents[:, :1]) != 0
  report.rows += len(tokens)
  return np.stack([tokens, 1 + np.cumsum(new, axis=1)], axis=1).astype(dtype)
