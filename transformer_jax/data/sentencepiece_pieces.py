"""The pieces of a SentencePiece model as plain values: numbers, scores, kinds."""

from collections.abc import Iterable
from typing import NamedTuple

from sentencepiece import sentencepiece_model_pb2

from transformer_jax.config import PieceKind
from transformer_jax.data.sentencepiece_tokenizer import SPACE, SentencePieceTokenizer
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.runtime.errors import InputError

# SentencePiece scores a character without a piece this much below the least likely piece.
_UNKNOWN_PENALTY = 10.0
_KINDS = {1: PieceKind.UNIGRAM, 2: PieceKind.BPE}  # by SentencePiece's numbers


class Pieces(NamedTuple):
  """The pieces of a model that a text can have.

  Attributes:
    kind: how the model chooses among them.
    ids: the number of each piece.
    scores: the score of each piece that is not `atomic`.
    bytes_: the number of each byte's piece.
    atomic: the pieces that a text is cut at before everything else (SentencePiece's user-defined symbols).
    longest: the most characters of a piece.
  """

  kind: PieceKind
  ids: dict[str, int]
  scores: dict[str, float]
  bytes_: list[int]
  atomic: tuple[str, ...]
  longest: int

  @property
  def unknown_score(self) -> float:
    """The score of a character that is no piece."""
    return min(self.scores.values(), default=0.0) - _UNKNOWN_PENALTY

  def numbers(self, pieces: Iterable[str]) -> list[int]:
    """The numbers of pieces; what is no piece is spelled in bytes."""
    found: list[int] = []
    for piece in pieces:
      number = self.ids.get(piece)
      found += [self.bytes_[byte] for byte in piece.encode()] if number is None else [number]
    return found


def pieces_of(tokenizer: Tokenizer) -> Pieces:
  """The pieces of a tokenizer that splits each word by itself.

  Raises:
    InputError: the tokenizer is not of the kinds that `SentencePieceTokenizer.learn` learns.
  """
  cannot = "this vocabulary cannot be sampled from"
  if not isinstance(tokenizer, SentencePieceTokenizer):
    raise InputError(f"{cannot}, as another toolkit made it: leave out config.data.bpe_dropout and unigram_alpha")
  model = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.to_bytes())  # pyright: ignore[reportAttributeAccessIssue]
  types, kind = type(model.pieces[0]), _KINDS.get(model.trainer_spec.model_type)
  if kind is None:
    raise InputError(f"{cannot}, as it is neither of byte-pair encoding nor a unigram model: learn another one")
  by_type: dict[int, dict[str, tuple[int, float]]] = {}
  for number, piece in enumerate(model.pieces):
    by_type.setdefault(piece.type, {})[piece.piece] = number, piece.score
  normal, atomic = by_type.get(types.NORMAL, {}), by_type.get(types.USER_DEFINED, {})
  if (
    by_type.get(types.UNUSED) or any(SPACE in piece[1:] for piece in normal) or any(SPACE in piece for piece in atomic)
  ):
    raise InputError(f"{cannot}, as it has pieces of several words, or unused ones: learn another one")
  bytes_ = by_type.get(types.BYTE, {})
  return Pieces(
    kind,
    {piece: number for piece, (number, _) in (normal | atomic).items()},
    {piece: score for piece, (_, score) in normal.items()},
    [bytes_[f"<0x{byte:02X}>"][0] for byte in range(256)],
    tuple(sorted(atomic, key=len, reverse=True)),
    max(map(len, normal), default=1),
  )
