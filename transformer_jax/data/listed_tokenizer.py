"""SentencePiece whose pieces have the numbers of a list, as the models of other toolkits have them."""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import sentencepiece

from transformer_jax.data import fingerprint
from transformer_jax.data.sentencepiece_rules import replacements
from transformer_jax.data.sentencepiece_tokenizer import FILE, SPACE, texts_of
from transformer_jax.data.text import LONGEST_LINE
from transformer_jax.data.tokenizer import NO_TEXT, Tokenizer, is_piece
from transformer_jax.data.words import words_of
from transformer_jax.model.special_tokens import BOS, EOS, PAD, UNK
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.values import Json, JsonObject

# The name of the file with the list in a run folder.
PIECES = "pieces.json"
_SPECIAL = ("pad", "unk", "bos", "eos")  # in the order of their numbers here
_LONGEST_RULE = 64  # bytes; the longest replacement of NFKC, which SentencePiece knows by name, has 33
_TOO_LONG = re.compile(rb"[^\0]{%d}" % (_LONGEST_RULE + 1))


class PieceList(NamedTuple):
  """The pieces of a vocabulary in the order of another toolkit.

  Here the special pieces have the first numbers, and the others follow in their order. Where there is no `bos`, an
  ordinary piece has its number.

  Attributes:
    pieces: all different.
    pad, unk, eos: the pieces that stand for no text.
    bos: that of the beginning; None in a vocabulary without one.
  """

  pieces: tuple[str, ...]
  pad: str
  unk: str
  eos: str
  bos: str | None = None

  def order(self) -> np.ndarray:
    """The place in `pieces` of each of our numbers: `[vocab]`."""
    place = {piece: number for number, piece in enumerate(self.pieces)}
    special = [getattr(self, name) for name in _SPECIAL]
    others = iter(sorted(set(range(len(place))) - {place[piece] for piece in special if piece is not None}))
    first = [place[piece] if piece is not None else next(others) for piece in special]
    return np.array([*first, *others])

  def to_json(self) -> JsonObject:
    """Values of JSON."""
    return {**self._asdict(), "pieces": list(self.pieces)}

  @classmethod
  def from_json(cls, values: Json, name: str) -> "PieceList":
    """The inverse of `to_json`; `name` is the file's.

    Raises:
      InputError: these are no such values.
    """
    names = values.get("pieces") if isinstance(values, dict) else None
    if not isinstance(names, list) or not all(map(is_piece, names)) or len(names) < len(_SPECIAL):
      raise InputError(f"{name} is no list of pieces: take it from the run again")
    special: JsonObject = {key: values.get(key) for key in _SPECIAL}
    given = [piece for key, piece in special.items() if piece is not None or key != "bos"]
    known = set(names)
    if len(known) < len(names):
      raise InputError(f"{name} has a piece twice: take it from the run again")
    if not all(is_piece(piece) and piece in known for piece in given) or len(set(given)) < len(given):
      raise InputError(f"{name} does not tell which pieces are {', '.join(_SPECIAL)}: take it from the run again")
    return cls(tuple(names), **special)


class ListedTokenizer(Tokenizer):
  """The tokenizer of one language: SentencePiece chooses a text's pieces, and a list has their numbers.

  A piece that is not in the list is UNK. A text that begins with a code such as `>>fr<<` has the code as its first
  piece. The SentencePiece model may normalise texts, so that `decode(encode(text))` may differ from `text`.

  Args:
    model: a serialised SentencePiece model.
    vocabulary: the list.
    name: the model's, for messages.

  Raises:
    InputError: `model` is no SentencePiece model, or its rules of normalisation write long texts.
  """

  def __init__(self, model: bytes, vocabulary: PieceList, name: str = "the SentencePiece model"):
    try:
      if not model:
        raise ValueError("an empty file would be taken for none")
      self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)  # pyright: ignore[reportCallIssue]
      self._processor.encode("a", out_type=str)
      rules = replacements(model)
      unknown = self._processor.decode([self._processor.id_to_piece(self._processor.unk_id())])
    except (RuntimeError, ValueError, IndexError) as error:  # the pieces may be no text, and the unknown one no piece
      raise InputError(f"{name} is not a SentencePiece model: copy it again") from error
    if any(map(_TOO_LONG.search, rules)):  # a line of a few characters would fill the memory
      raise InputError(f"{name} writes more than {_LONGEST_RULE} bytes in place of a character: choose another model")
    if len(unknown.encode()) > _LONGEST_RULE:
      raise InputError(f"{name} writes more than {_LONGEST_RULE} bytes for an unknown piece: choose another model")
    self._model, self.vocabulary = model, vocabulary
    self._names = [vocabulary.pieces[place] for place in vocabulary.order()]
    self._numbers = {piece: number for number, piece in enumerate(self._names)}
    self.suppressed = (PAD, UNK) if vocabulary.bos is None else (PAD, UNK, BOS)
    self.special = (*self.suppressed, EOS)
    names = (piece.removeprefix(SPACE) for piece in self._names)
    self.codes = [*dict.fromkeys(name for name in names if name and self.head(name) == name)]
    self.vocab_size = len(self._names)
    # UNK stands for any number of unknown characters, and spaces may be dropped: the number of tokens bounds no length.
    self.longest_piece = LONGEST_LINE

  def to_bytes(self) -> bytes:
    """The serialised model, without the list."""
    return self._model

  def files(self) -> dict[str, bytes]:
    return {FILE: self._model, PIECES: to_json_file(self.vocabulary.to_json())}

  def fingerprint(self) -> str:
    values = json.dumps(self.vocabulary.to_json()).encode()
    return fingerprint.of_bytes(self._model + values)

  def head(self, text: str) -> str:
    """The code of a language in front of a text, such as `>>fr<<` or our own `<2fr>`, if it is a piece."""
    code, _ = _code_first(text)
    if code:
      return code[0] if code[0] in self._numbers else ""
    tag = text[: text.find(">") + 1] if text.startswith("<2") else ""
    return tag if tag in self._numbers or f"{SPACE}{tag}" in self._numbers else ""

  def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
    divided = [_code_first(text) for text in texts]
    try:
      found = self._processor.encode(
        [text for _, text in divided], out_type=str, num_threads=-1 if len(divided) > 1 else 1
      )
    except (TypeError, UnicodeError) as error:
      raise InputError(NO_TEXT) from error
    pairs = zip(divided, found, strict=True)
    return [[self._numbers.get(piece, UNK) for piece in (*code, *pieces)] for (code, _), pieces in pairs]

  def decode(self, ids: Sequence[int]) -> str:
    """The text of the pieces, without spaces at its ends; UNK is U+FFFD, and the other special pieces are no text."""
    names = ["\ufffd" if i == UNK else self._names[i] for i in ids if i == UNK or i not in self.special]
    return str(self._processor.decode(names)).replace(SPACE, " ").strip() if names else ""

  def pieces(self, ids: Sequence[int]) -> list[str]:
    return texts_of(self._processor, [self._names[i] for i in ids])

  def words(self, text: str) -> list[int | None]:
    """The number of each piece's word, as of `Tokenizer.words`; a space that only the normalised text has is none."""
    code, rest = _code_first(text)
    of_characters, before = words_of(text), len(text) - len(rest)
    normal, places = self._processor.normalize(rest, with_offsets=True)
    pieces = self._processor.encode(rest, out_type=str)
    words, end = [of_characters[0] for _ in code], 0
    for piece, byte in zip(pieces, map(self._processor.is_byte, map(self._processor.piece_to_id, pieces)), strict=True):
      # A piece has its characters of the normalised text, or a byte of one.
      end += not 0x80 <= int(piece[1:-1], 16) < 0xC0 if byte else len(piece)
      own = [i for i in range(end - (1 if byte else len(piece)), end) if normal[i] not in (SPACE, " ")]
      words.append(of_characters[before + places[own[-1]]] if own else None)
    return words


def to_json_file(values: JsonObject) -> bytes:
  """The content of `PIECES`."""
  return f"{json.dumps(values, ensure_ascii=False, indent=0)}\n".encode()


def _code_first(text: str) -> tuple[list[str], str]:
  """The code of a language in front of a text, if there is one, and the text."""
  end = text.find("<<") if text.startswith(">>") else -1
  return ([], text) if end < 0 else ([text[: end + 2]], text[end + 2 :])
