"""The vocabulary for programs that use SentencePiece by itself.

`data/tokenizer.py` puts a space in front of each text and takes it away again. SentencePiece does so itself where its
model says so (`add_dummy_prefix`), and the model that is exported says it. One difference stays: a text with the sign
U+2581 itself, which SentencePiece reads as a space.
"""

from typing import NamedTuple

import numpy as np
import sentencepiece

from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.data.tokenizer_pair import TokenizerPair
from transformer_jax.model.special_tokens import FIRST_PIECE
from transformer_jax.runtime.errors import InputError

# `normalizer_spec { add_dummy_prefix: true }` as a protocol buffer. Where a message follows another, the fields of both
# are merged, and the last value of a field counts.
_ADD_DUMMY_PREFIX = b"\x1a\x02\x18\x01"


def pieces(tokenizer: Tokenizer) -> list[str]:
  """The names of the pieces in the order of their numbers."""
  _require_one_model(tokenizer)
  processor = _processor(tokenizer.to_bytes())
  return [processor.id_to_piece(i) for i in range(tokenizer.vocab_size)]


def sentencepiece_model(tokenizer: Tokenizer) -> bytes:
  """A SentencePiece model that by itself gives each text the pieces that the tokenizer gives it."""
  _require_one_model(tokenizer)
  return tokenizer.to_bytes() + _ADD_DUMMY_PREFIX


def without_dummy_prefix(model: bytes) -> bytes:
  """The model of a run, of what `sentencepiece_model` has made of it."""
  return model.removesuffix(_ADD_DUMMY_PREFIX)


class Numbered(NamedTuple):
  """A vocabulary as another library is to have it.

  Attributes:
    pieces: the names of the pieces.
    order: `[vocab]`, the place in `pieces` of each of our numbers.
    models: the SentencePiece models of the two languages.
  """

  pieces: list[str]
  order: np.ndarray
  models: tuple[bytes, bytes]


def numbered(tokenizer: Tokenizer) -> Numbered:
  """The vocabulary with the numbers that it has here, or that it came with if it was imported."""
  if isinstance(tokenizer, TokenizerPair):
    own = tokenizer.target.vocabulary
    return Numbered(list(own.pieces), own.order(), (tokenizer.source.to_bytes(), tokenizer.target.to_bytes()))
  model = sentencepiece_model(tokenizer)
  return Numbered(pieces(tokenizer), np.arange(tokenizer.vocab_size), (model, model))


def spelled(tokenizer: Tokenizer) -> list[str]:
  """The names of the pieces in the order of their numbers, with a space in place of U+2581."""
  return [name.replace("\u2581", " ") for name in pieces(tokenizer)]


def merged(tokenizer: Tokenizer) -> list[str] | None:
  """The pieces that byte-pair encoding makes, the first one first, with real spaces; None for another kind of model.

  SentencePiece has their ranks as scores 0, -1, -2, ....
  """
  processor, names = _processor(tokenizer.to_bytes()), spelled(tokenizer)
  made = [i for i in range(FIRST_PIECE, tokenizer.vocab_size) if not processor.is_byte(i)]
  ranks = [-processor.get_score(i) for i in made]
  return [names[i] for i in made] if ranks == list(range(len(made))) else None


def _require_one_model(tokenizer: Tokenizer) -> None:
  if isinstance(tokenizer, TokenizerPair):
    raise InputError(
      "the run has a SentencePiece model for each of its languages, but the format has one for both: choose "
      "--to safetensors or marian-hf"
    )


def _processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
  return sentencepiece.SentencePieceProcessor(model_proto=model)  # pyright: ignore[reportCallIssue]
