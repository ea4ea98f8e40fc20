"""Word vectors made elsewhere, in the text format of word2vec, GloVe and fastText."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from etils import epath

from transformer_jax.data.text import existing, lines_of
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.runtime.errors import InputError, one_line

_MOST_DIGITS = 9  # of a number in the header; Python refuses to read thousands of digits


class WordVectors(NamedTuple):
  """The vectors of pieces of a vocabulary.

  Attributes:
    pieces: the pieces' numbers, int64 `[pieces]`, in the order of the file.
    vectors: float32 `[pieces, model]`.
  """

  pieces: np.ndarray
  vectors: np.ndarray


def read_vectors(name: str, tokenizer: Tokenizer, d_model: int) -> WordVectors:
  """Reads the vectors of the pieces that are whole words: a space and the word.

  A line is a word and its numbers, separated by single spaces. The first line may be a header, `COUNT DIMENSION`, as
  word2vec and fastText write it; GloVe writes none. A word may contain spaces, as some of GloVe's do. If a word occurs
  twice, its first vector counts. Empty lines are skipped. Numbers of words that are no piece are counted, not read.

  Args:
    name: the path of the file: plain, `.gz` or `.xz`, also on `gs://`.
    tokenizer: the vocabulary.
    d_model: the number of numbers that each vector must have.

  Raises:
    InputError: the file cannot be read or is not UTF-8, a vector has another number of numbers, a number is not
      finite, or no piece has a vector.
  """
  path = existing(name)
  wanted = whole_words(tokenizer)
  found: dict[int, np.ndarray] = {}
  for number, line in _vector_lines(path, d_model):
    if line.count(" ") == d_model:  # most words are no piece: their lines are not split
      piece = wanted.get(line[: line.index(" ")])
      if piece is not None and piece not in found:
        found[piece] = _numbers(line.split(" ")[1:], f"{path}, line {number}")
    else:
      _require_word_with_spaces(line.split(" "), d_model, f"{path}, line {number}")
  if not found:
    raise InputError(
      f"{path} has no vector of a token of the vocabulary: choose vectors of the text's language and case"
    )
  return WordVectors(np.array([*found], np.int64), np.stack([*found.values()]))


def whole_words(tokenizer: Tokenizer) -> Mapping[str, int]:
  """The pieces that are a space and a word: word -> number."""
  pieces = tokenizer.pieces(range(tokenizer.vocab_size))
  return {piece[1:]: i for i, piece in enumerate(pieces) if piece[:1] == " " and piece[1:] and " " not in piece[1:]}


def _vector_lines(path: epath.Path, d_model: int) -> Iterator[tuple[int, str]]:
  """The numbered lines that have a vector, without the spaces at their ends, which word2vec's program writes."""
  lines = ((number, line.rstrip(" ")) for number, line in enumerate(lines_of(path), 1))
  first, promised, count = True, None, 0
  for number, line in lines:
    if not line:
      continue
    if first:
      first, fields = False, line.split(" ")
      header = len(fields) == 2 and all(field.isdecimal() and len(field) <= _MOST_DIGITS for field in fields)
      dimension = int(fields[1]) if header else len(fields) - 1
      if dimension < 1:
        raise InputError(f"{path}, line {number}: expected a word and its numbers, with one space between them")
      if dimension != d_model:
        raise InputError(
          f"{path}, line {number}: the vectors have {dimension:,} numbers, but config.model.d_model is {d_model}: "
          f"choose vectors of {d_model} numbers, or set config.model.d_model={dimension}"
        )
      if header:
        promised = int(fields[0])
        continue
    count += 1
    yield number, line
  if promised not in (None, count):
    raise InputError(f"{path} has {count:,} vectors, but its first line says {promised:,}: copy it again")


def _require_word_with_spaces(fields: Sequence[str], d_model: int, place: str) -> None:
  """Raises InputError unless there are more fields than a word and its numbers because the word contains spaces.

  Such a word is no piece.
  """
  more = len(fields) - 1 - d_model
  if more < 0 or any(map(_is_number, fields[1 : 1 + more])):
    raise InputError(
      f"{place}: a word and {len(fields) - 1:,} numbers, but the first vector has {d_model}: is it whole?"
    )


def _is_number(text: str) -> bool:
  try:
    float(text)
  except ValueError:
    return False
  return True


def _numbers(fields: Sequence[str], place: str) -> np.ndarray:
  """The numbers, float32 `[model]`."""
  for field in fields:
    if not _is_number(field) or not abs(float(field)) <= float(np.finfo(np.float32).max):
      raise InputError(f"{place}: {one_line(field, 40)!r} is not a finite number: is the file whole?")
  return np.array([float(field) for field in fields], np.float32)
