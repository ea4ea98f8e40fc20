"""The vocabulary for programs that use SentencePiece by itself.

`data/sentencepiece_tokenizer.py` puts a space in front of each text and takes it away again. SentencePiece does so
itself where its model says so (`add_dummy_prefix`), and the model that is exported says it. One difference stays: a
text with the sign U+2581 itself, which SentencePiece reads as a space.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import sentencepiece

from transformer_jax.data.listed_tokenizer import ListedTokenizer
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.model.special_tokens import FIRST_PIECE
from transformer_jax.runtime.errors import InputError

# `normalizer_spec { add_dummy_prefix: true }` as a protocol buffer. Where a message follows another, the fields of both
# are merged, and the last value of a field counts.
_ADD_DUMMY_PREFIX = b"\x1a\x02\x18\x01"
ONE_MODEL, TWO_MODELS = "sentencepiece.model", ("source.spm", "target.spm")


def pieces(tokenizer: Tokenizer) -> list[str]:
  """The names of the pieces in the order of their numbers, for a tokenizer of one vocabulary.

  Raises:
    InputError: the pieces have numbers of their own, which are not those of a SentencePiece model.
  """
  processor = _processor(tokenizer)
  return [processor.id_to_piece(i) for i in range(tokenizer.vocab_size)]


def sentencepiece_model(tokenizer: Tokenizer) -> bytes:
  """A SentencePiece model that by itself gives each text the pieces that a tokenizer of one vocabulary gives it."""
  return _with_own_numbers(tokenizer).to_bytes() + _ADD_DUMMY_PREFIX


def without_dummy_prefix(model: bytes) -> bytes:
  """The inverse of `sentencepiece_model`: the SentencePiece model of the run."""
  return model.removesuffix(_ADD_DUMMY_PREFIX)


class Numbered(NamedTuple):
  """The vocabulary of one language as another library is to have it.

  Attributes:
    pieces: the names of the pieces.
    order: `[vocab]`, the place in `pieces` of each of our numbers.
    model: the SentencePiece model.
  """

  pieces: list[str]
  order: np.ndarray
  model: bytes


def numbered(tokenizer: Tokenizer) -> Numbered:
  """The vocabulary of one language, with the numbers that it has here, or that it came with if it was imported."""
  if isinstance(tokenizer, ListedTokenizer):
    return Numbered(list(tokenizer.vocabulary.pieces), tokenizer.vocabulary.order(), tokenizer.to_bytes())
  return Numbered(pieces(tokenizer), np.arange(tokenizer.vocab_size), sentencepiece_model(tokenizer))


def write_models(folder: Path, tokenizer: Tokenizer) -> None:
  """Writes the SentencePiece model of both languages, or two if there are two vocabularies, for `usage`.

  Raises:
    InputError: as in `pieces`.
  """
  sides = [tokenizer] if len(tokenizer.vocab_sizes) == 1 else [tokenizer.source, tokenizer.target]
  for name, side in zip(model_files(tokenizer), sides, strict=True):
    (folder / name).write_bytes(sentencepiece_model(side))


def model_files(tokenizer: Tokenizer) -> tuple[str, ...]:
  """The names of the files that `write_models` writes."""
  return (ONE_MODEL,) if len(tokenizer.vocab_sizes) == 1 else TWO_MODELS


def usage(tokenizer: Tokenizer) -> dict[str, str]:
  """The parts of a program that reads the files of `write_models`.

  Returns:
    `load`, a line that makes the processors; `source` and `target`, the names that the two have in it.
  """
  files = model_files(tokenizer)
  names = ("pieces",) if len(files) == 1 else ("of_source", "of_target")
  made = (
    f'{name} = sentencepiece.SentencePieceProcessor(model_file="{file}")'
    for name, file in zip(names, files, strict=True)
  )
  return {"load": "\n".join(made), "source": names[0], "target": names[-1]}


def spelled(tokenizer: Tokenizer) -> list[str]:
  """The names of the pieces in the order of their numbers, with a space in place of U+2581."""
  return [name.replace("\u2581", " ") for name in pieces(tokenizer)]


def merged(tokenizer: Tokenizer) -> list[str] | None:
  """The pieces that byte-pair encoding makes, the first one first, with real spaces; None for another kind of model.

  SentencePiece has their ranks as scores 0, -1, -2, ....
  """
  processor, names = _processor(tokenizer), spelled(tokenizer)
  made = [i for i in range(FIRST_PIECE, tokenizer.vocab_size) if not processor.is_byte(i)]
  ranks = [-processor.get_score(i) for i in made]
  return [names[i] for i in made] if ranks == list(range(len(made))) else None


def _with_own_numbers(tokenizer: Tokenizer) -> SentencePieceTokenizer:
  """The tokenizer, whose pieces must have the numbers of its SentencePiece model."""
  if isinstance(tokenizer, SentencePieceTokenizer):
    return tokenizer
  raise InputError(
    "the imported run does not number its pieces as its SentencePiece model does, which this format needs: "
    "choose --to safetensors or marian-hf"
  )


def _processor(tokenizer: Tokenizer) -> sentencepiece.SentencePieceProcessor:
  model = _with_own_numbers(tokenizer).to_bytes()
  return sentencepiece.SentencePieceProcessor(model_proto=model)  # pyright: ignore[reportCallIssue]
