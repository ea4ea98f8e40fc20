"""The vocabulary for programs that use SentencePiece by itself.

`data/tokenizer.py` puts a space in front of each text and takes it away again. SentencePiece does so itself where its
model says so (`add_dummy_prefix`), and the model that is exported says it. One difference stays: a text with the sign
U+2581 itself, which SentencePiece reads as a space.
"""

import sentencepiece

from transformer_jax.data.tokenizer import Tokenizer

# `normalizer_spec { add_dummy_prefix: true }` as a protocol buffer. Where a message follows another, the fields of both
# are merged, and the last value of a field counts.
_ADD_DUMMY_PREFIX = b"\x1a\x02\x18\x01"


def pieces(tokenizer: Tokenizer) -> list[str]:
  """The names of the pieces in the order of their numbers."""
  processor = _processor(tokenizer.to_bytes())
  return [processor.id_to_piece(i) for i in range(tokenizer.vocab_size)]


def sentencepiece_model(tokenizer: Tokenizer) -> bytes:
  """A SentencePiece model that by itself gives each text the pieces that the tokenizer gives it."""
  return tokenizer.to_bytes() + _ADD_DUMMY_PREFIX


def _processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
  return sentencepiece.SentencePieceProcessor(model_proto=model)  # pyright: ignore[reportCallIssue]
