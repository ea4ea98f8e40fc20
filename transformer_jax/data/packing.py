"""Packing of several sentence pairs into one fixed-length row; segments tell them apart.

A row has `row_length` source tokens and as many target tokens. The k-th pair's
tokens have segment k, from 1, in source and target; padding has segment 0. Masks
keep the pairs from attending to each other, so that a packed pair has the same
logits and the same loss as alone.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from transformer_jax.config import DataConfig
from transformer_jax.data.encoding import TOKEN, Encoder, gathered, in_batches
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.pair_counts import PairCounts
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.model.special_tokens import EOS
from transformer_jax.runtime.workers import Workers

# The four arrays of a row in their order: `rows[row, SOURCE]` is `[row_length]`.
SOURCE, SOURCE_SEGMENTS, TARGET, TARGET_SEGMENTS = range(4)
PARTS = 4
INPUTS = 4  # a fifth array, the decoder's input; an update adds it if it is not the target, shifted

# Pairs that are placed together. Larger windows pack no better, smaller ones worse.
WINDOW = 8192
# Characters of a too long sentence that are encoded, to report its length.
_CHARACTERS = 1 << 16

Pair = tuple[Sequence[int] | np.ndarray, Sequence[int] | np.ndarray]

# (a function, items) -> the function's result for each item.
MapFunction = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
# (a sentence, the index of its pair in the corpus, 0 for a source or 1 for a target) -> its tokens, without EOS.
SamplePieces = Callable[[str, int, int], Sequence[int]]


def pack_pairs(
  pairs: Iterable[tuple[str, str]], tokenizer: Tokenizer, data: DataConfig, report: PackingReport
) -> Iterator[np.ndarray]:
  """Encodes sentence pairs and packs them, on all cores: rows `[rows, 4, row_length]`, one window at a time.

  Args:
    pairs: the text.
    tokenizer: the tokenizer.
    data: the config of the data, which has the length of a row and of the longest sentence.
    report: an empty report, which is filled in.
  """
  counts = PairCounts()
  with Workers() as workers:
    encoded = encode_pairs(pairs, tokenizer, data.longest, counts, workers.map)
    for rows in pack(encoded, data.row_length, tokenizer.row_type, workers.map):
      report.rows += len(rows)
      yield rows
  counts.write_to(report, data.longest)


def encode_pairs(
  sentences: Iterable[tuple[str, str]],
  tokenizer: Tokenizer,
  longest: int,
  counts: PairCounts,
  map_function: MapFunction = map,
) -> Iterator[Pair]:
  """The token sequences of sentence pairs as arrays, each with an EOS.

  Two kinds of pairs are left out: those whose source or target has more than
  `longest` tokens, and those whose source or target is empty or only spaces.

  Args:
    sentences: the source and target sentences.
    tokenizer: the tokenizer, or those of source and target.
    longest: the most tokens of a source or of a target, EOS included.
    counts: gets the counts, which are complete after the last pair. Its length of the longest sentence counts the
      tokens of at least the first 65,536 characters.
    map_function: calls a function for each item, in order, as `map` and `Workers.map` do.
  """
  # No token spells more characters, so a sentence that is cut here is still too long.
  most = max(_CHARACTERS, *(longest * each.longest_piece for each in (tokenizer.source, tokenizer.target)))
  cut = ((_cut(source, most), _cut(target, most)) for source, target in sentences)
  encoder = Encoder(tokenizer.source)
  encoders = encoder, encoder if tokenizer.source is tokenizer.target else Encoder(tokenizer.target)
  batches = in_batches(cut, lambda pair: len(pair[0]) + len(pair[1]))
  for tokens, lengths, of_batch in map_function(functools.partial(_encode, encoders, longest), batches):
    counts.add(of_batch)
    yield from _divided(tokens, lengths)


def _cut(text: str, most: int) -> str:
  """The first `most` characters; none of a text that is only spaces."""
  return text[:most] if text.strip() else ""


def _encode(
  encoders: tuple[Encoder, Encoder], longest: int, batch: list[tuple[str, str]]
) -> tuple[np.ndarray, np.ndarray, PairCounts]:
  """The tokens of the pairs that are kept, one after another; their lengths `[pairs, 2]`; the counts."""
  encoded = [encode([pair[which] for pair in batch]) for which, encode in enumerate(encoders)]
  lengths = np.array([[*map(len, sentences)] for sentences in encoded]).T // np.dtype(TOKEN).itemsize
  full = lengths.min(axis=1) > 0
  lengths[full] += 1  # EOS
  fits = full & (lengths.max(axis=1) <= longest)
  end = np.array(EOS, TOKEN).tobytes()
  kept = [encoded[which][i] + end for i in np.flatnonzero(fits).tolist() for which in range(2)]
  counts = PairCounts(
    int(np.sum(fits)),
    *lengths[fits].sum(axis=0).tolist(),
    too_long=int(np.sum(full & ~fits)),
    empty=int(np.sum(~full)),
    longest=int(lengths[full].max(initial=0)),
  )
  return np.frombuffer(b"".join(kept), TOKEN), lengths[fits], counts


def _divided(tokens: np.ndarray, lengths: np.ndarray) -> Iterator[Pair]:
  """The pairs of tokens that follow one another."""
  start = 0
  for source, target in lengths.tolist():
    middle, end = start + source, start + source + target
    yield tokens[start:middle], tokens[middle:end]
    start = end


def sample_pairs(
  sentences: Iterable[tuple[str, str]], tokenizer: Tokenizer, longest: int, sample: SamplePieces
) -> Iterator[Pair]:
  """The token sequences of sentence pairs with random pieces, each with an EOS.

  A sentence with more than `longest` random pieces has those of the tokenizer. So the pairs of `encode_pairs` are
  here, too, except that random pieces may fit if the tokenizer's do not.

  Args:
    sentences: the source and target sentences.
    tokenizer: the tokenizer, or those of source and target.
    longest: the most tokens of a source or of a target, EOS included.
    sample: gives the random pieces.
  """
  for number, texts in enumerate(sentences):
    if not all(text.strip() for text in texts):
      continue
    pair = [
      [*_fitting(text, own, longest, functools.partial(sample, text, number, which)), EOS]
      for which, (text, own) in enumerate(zip(texts, (tokenizer.source, tokenizer.target), strict=True))
    ]
    if max(map(len, pair)) <= longest:
      yield pair[0], pair[1]


def _fitting(text: str, tokenizer: Tokenizer, longest: int, sample: Callable[[], Sequence[int]]) -> Sequence[int]:
  """The random tokens of a text if they fit with their EOS, else those of the tokenizer."""
  most = longest * tokenizer.longest_piece
  if len(text) > most:  # no token spells more characters, so neither fits
    return tokenizer.encode(text[: most + 1])
  sampled = sample()
  return sampled if len(sampled) < longest else tokenizer.encode(text)


def pack(
  pairs: Iterable[Pair], row_length: int, dtype: type = np.int32, map_function: MapFunction = map
) -> Iterator[np.ndarray]:
  """Packs pairs into rows by best fit decreasing: in each window the longest pair first, into the fullest row it fits.

  Args:
    pairs: pairs of at most `row_length` source tokens and as many target tokens.
    row_length: the source tokens of a row, and its target tokens.
    dtype: the type of the rows.
    map_function: calls a function for each item, in order, as `map` and `Workers.map` do.

  Yields:
    Rows `[rows, 4, row_length]`, one window at a time.
  """
  return map_function(functools.partial(pack_window, row_length, dtype), map(_joined, gathered(pairs, WINDOW)))


def _joined(window: list[Pair]) -> tuple[np.ndarray, np.ndarray]:
  """The tokens of all pairs, one after another, and their lengths `[pairs, 2]`."""
  sentences = [tokens for pair in window for tokens in pair]
  return np.concatenate(sentences), np.array([*map(len, sentences)]).reshape(-1, 2)


def pack_window(row_length: int, dtype: type, window: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
  """The rows of one window: the longest pair first, into the fullest row that it fits.

  Args:
    row_length, dtype: as in `pack`.
    window: the tokens of all pairs, one after another, and their lengths `[pairs, 2]`.
  """
  tokens, lengths = window
  row_of = np.empty(len(lengths), np.int64)
  # Tokens left in each row, for the source, for the target and for both; the row behind the last used one is empty.
  free = np.full((3, len(lengths) + 1), row_length, np.int32)
  free[2] = 2 * row_length
  rows = 0
  for i in np.argsort(-lengths.max(axis=1), kind="stable").tolist():
    source, target = lengths[i].tolist()
    left = free[:, : rows + 1]
    fits = (left[0] >= source) & (left[1] >= target)
    row = int(np.where(fits, left[2], 4 * row_length).argmin())
    free[:, row] -= source, target, source + target
    row_of[i] = row
    rows = max(rows, row + 1)
  return _fill(tokens, lengths, row_of, rows, row_length, dtype)


def _fill(
  tokens: np.ndarray, lengths: np.ndarray, row_of: np.ndarray, rows: int, row_length: int, dtype: type
) -> np.ndarray:
  """The rows, with the pairs of each in the order of the window."""
  order = np.argsort(row_of, kind="stable")  # the pairs row by row
  first = np.searchsorted(row_of[order], np.arange(rows))[row_of[order]]  # the index in `order` of its row's first pair
  segments = np.empty(len(order), np.int64)
  segments[order] = 1 + np.arange(len(order)) - first
  before = np.cumsum(lengths[order], axis=0) - lengths[order]
  starts = np.empty_like(lengths)  # [pairs, 2], in the row
  starts[order] = before - before[first]
  starts += (row_of[:, None] * PARTS + (SOURCE, TARGET)) * row_length  # in all rows
  flat = lengths.reshape(-1)
  indices = np.arange(len(tokens)) + np.repeat(starts.reshape(-1) - (np.cumsum(flat) - flat), flat)
  packed = np.zeros((rows, PARTS, row_length), dtype)
  packed.reshape(-1)[indices] = tokens
  packed.reshape(-1)[indices + row_length] = np.repeat(np.repeat(segments, 2), flat)
  return packed
