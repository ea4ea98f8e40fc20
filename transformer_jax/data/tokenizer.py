"""What every tokenizer does, whatever its vocabulary: a text to the numbers of its pieces, and back."""

import abc
from collections.abc import Collection, Sequence

import numpy as np

from transformer_jax.data import fingerprint
from transformer_jax.data.words import words_of
from transformer_jax.model.special_tokens import BOS, EOS, PAD, UNK
from transformer_jax.runtime.texts import is_text
from transformer_jax.runtime.values import Json

LONGEST_PIECE = 4096  # characters, or bytes of a SentencePiece model; those of real vocabularies are far shorter
NO_TEXT = "a sentence has half of a surrogate pair, which is no text: decode its bytes again"


def row_type(vocab_sizes: Sequence[int]) -> type:
  """The type of the tokens in packed rows."""
  return np.uint16 if max(vocab_sizes) <= 1 << 16 else np.uint32


def is_piece(value: Json) -> bool:
  """Whether a value can be a piece; an output of many long ones would fill the memory."""
  return isinstance(value, str) and len(value) <= LONGEST_PIECE and is_text(value)


class Tokenizer(abc.ABC):
  """Converts text to piece numbers and back.

  Attributes:
    vocab_size: the number of pieces, special ones included.
    longest_piece: the most bytes that one piece stands for; those of the longest line if nothing bounds them.
    special: the numbers of the pieces that are no text.
    suppressed: those of them that a language model never writes.
    codes: the pieces that tell the target language in front of a source, such as `>>fr<<`.
    lines_apart: whether each line of a text is encoded by itself, with a line feed between two lines.
  """

  vocab_size: int
  longest_piece: int
  special: Collection[int] = (PAD, UNK, BOS, EOS)
  suppressed: tuple[int, ...] = (PAD, UNK, BOS)
  codes: Sequence[str] = ()
  lines_apart: bool = True

  @abc.abstractmethod
  def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
    """`encode` for many texts at once.

    Raises:
      InputError: a text has a lone surrogate, which is no character.
    """

  @abc.abstractmethod
  def decode(self, ids: Sequence[int]) -> str:
    """The text of the pieces; PAD, BOS and EOS stand for no text.

    Any numbers give a text: bytes that are not UTF-8 become U+FFFD. Bytes can also spell a line feed, so a caller that
    writes lines must handle it.
    """

  @abc.abstractmethod
  def pieces(self, ids: Sequence[int]) -> list[str]:
    """The text of each piece, a space in front included; for reading, as not every piece is a text by itself.

    A byte that is no character is `<0xE2>`, for example.
    """

  @abc.abstractmethod
  def files(self) -> dict[str, bytes]:
    """The files of a run folder that hold the tokenizer, by name; `tokenizers.load` reads those of a model."""

  def fingerprint(self) -> str:
    """A digest of the files."""
    return fingerprint.of_bytes(b"".join(self.files().values()))

  @property
  def vocab_sizes(self) -> tuple[int, ...]:
    """The size of the vocabulary, in the form of `AnyModelConfig.vocab_sizes`."""
    return (self.vocab_size,)

  @property
  def row_type(self) -> type:
    """The type of the tokens in packed rows."""
    return row_type(self.vocab_sizes)

  @property
  def source(self) -> "Tokenizer":
    """The tokenizer of sources."""
    return self

  @property
  def target(self) -> "Tokenizer":
    """The tokenizer of targets."""
    return self

  def encode(self, text: str) -> list[int]:
    """The numbers of the text's pieces, without BOS and EOS; none for an empty text."""
    return self.encode_batch([text])[0]

  def words(self, text: str) -> list[int | None]:
    """The number of the word that each piece of a text belongs to, from 0; None for a piece of spaces alone."""
    return words_of(self.pieces(self.encode(text)))

  def head(self, text: str) -> str:
    """What each part of a text that is cut must begin with; it is nothing here."""
    return ""
