"""The vocabularies of BERT and GPT-2 as Hugging Face's library `tokenizers` reads them: for imported models.

WordPiece (Devlin et al. 2019) cuts a text at spaces and punctuation and takes the longest piece each time; what it has
no piece for is [UNK], and case may be lost. Byte-level byte-pair encoding (Radford et al. 2019) loses nothing. Only the
settings below can vary, so that a vocabulary of a stranger is data and not a program.
"""

import dataclasses
import enum
import functools
import json
from collections.abc import Sequence
from typing import Any

from etils import epath

from transformer_jax.data.tokenizer import NO_TEXT, Tokenizer, is_piece
from transformer_jax.runtime import plugins, untrusted
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.values import Json

FILE = "tokenizer.json"
_CONTINUES = "##"  # in front of a piece of WordPiece that continues a word


class Kind(enum.Enum):
  """How a text becomes pieces."""

  WORDPIECE = "wordpiece"
  BYTES = "byte-level"


@dataclasses.dataclass(frozen=True)
class Vocabulary:
  """A vocabulary.

  Attributes:
    kind: how a text becomes pieces.
    pieces: their names, in the order of their numbers in the library.
    merges: pairs of pieces that become one, the first ones first; of byte-level encoding.
    special: pieces that stand for no text. Of WordPiece they are PAD, MASK, CLS and SEP, and get the numbers 0 to 3
      here.
    unknown: the piece of a word that has no pieces; of WordPiece.
    lowercase: whether case is lost; of WordPiece.
    strip_accents: whether accents are lost; None is as `lowercase`.
    chinese_apart: whether each Chinese character is a word; of WordPiece.
    clean: whether control characters are left out; of WordPiece.

  Raises:
    InputError: a name is there twice, or is missing.
  """

  kind: Kind
  pieces: tuple[str, ...]
  merges: tuple[tuple[str, str], ...] = ()
  special: tuple[str, ...] = ()
  unknown: str = "[UNK]"
  lowercase: bool = True
  strip_accents: bool | None = None
  chinese_apart: bool = True
  clean: bool = True

  def __post_init__(self):
    known = set(self.pieces)
    if len(known) < len(self.pieces):
      raise InputError("the vocabulary has a piece twice: take it from another copy")
    used = {*self.special, *(piece for pair in self.merges for piece in (*pair, "".join(pair)))}
    if self.kind is Kind.WORDPIECE:
      used.add(self.unknown)
      if len(set(self.special)) != 4:
        raise InputError("the vocabulary must have four special tokens, for padding, mask, begin and end")
    elif not byte_letters().keys() <= known:
      raise InputError("the vocabulary has no token for some bytes, so that it cannot spell every text")
    if missing := used - known:
      raise InputError(f"the vocabulary has no token {min(missing)[:80]!a}, which it needs: take it from another copy")

  @functools.cached_property
  def order(self) -> list[int]:
    """The library's number of each of our pieces: of WordPiece the special ones first, the others in their order."""
    if self.kind is Kind.BYTES:
      return list(range(len(self.pieces)))
    numbers = {piece: number for number, piece in enumerate(self.pieces)}
    first = [numbers[piece] for piece in self.special]
    others = set(first)
    return [*first, *(number for number in range(len(self.pieces)) if number not in others)]


def to_json(vocabulary: Vocabulary) -> bytes:
  """The file of a run folder; `from_json` is the inverse."""
  values = dataclasses.asdict(vocabulary) | {"kind": vocabulary.kind.value}
  return (json.dumps(values, ensure_ascii=False, indent=0) + "\n").encode()


def from_json(content: bytes, name: str) -> Vocabulary:
  """The vocabulary of a run folder.

  Raises:
    InputError: the file is damaged.
  """
  values: Json = untrusted.json_of(epath.Path(name), lambda: content)
  wrong = InputError(f"{name} is no vocabulary that `import` wrote: import the model again")
  if not isinstance(values, dict) or values.keys() != {field.name for field in dataclasses.fields(Vocabulary)}:
    raise wrong
  flags = [values[key] for key in ("lowercase", "chinese_apart", "clean")]
  pieces, merges, special = values["pieces"], values["merges"], values["special"]
  if (
    values["kind"] not in [kind.value for kind in Kind]
    or not all(isinstance(flag, bool) for flag in flags)
    or not (values["strip_accents"] is None or isinstance(values["strip_accents"], bool))
    or not all(is_texts(texts) for texts in (pieces, special, [values["unknown"]]))
    or not isinstance(merges, list)
    or not all(is_texts(pair) and len(pair) == 2 for pair in merges)
  ):
    raise wrong
  values |= {"kind": Kind(values["kind"]), "pieces": tuple(pieces), "special": tuple(special)}
  try:
    return Vocabulary(**values | {"merges": tuple((first, second) for first, second in merges)})
  except InputError as error:
    raise InputError(f"{name}: {error}") from error


def is_texts(values: Json) -> bool:
  """Whether a JSON value is a list of texts that can be pieces, none of them empty."""
  return isinstance(values, list) and all(value and is_piece(value) for value in values)


class SubwordTokenizer(Tokenizer):
  """A tokenizer with such a vocabulary; the methods are those of `Tokenizer`.

  Names of special tokens in a text are letters like others. For WordPiece `decode(encode(text))` is the text in the
  vocabulary's letters and spaces.

  Args:
    vocabulary: the vocabulary.

  Raises:
    InputError: the library `tokenizers` is missing.
  """

  suppressed = ()
  lines_apart = False

  def __init__(self, vocabulary: Vocabulary):
    self.vocabulary = vocabulary
    self.vocab_size = len(vocabulary.pieces)
    self._numbers = {theirs: ours for ours, theirs in enumerate(vocabulary.order)}
    spell, special = _word_of if vocabulary.kind is Kind.WORDPIECE else _bytes_of, set(vocabulary.special)
    names = [vocabulary.pieces[number] for number in vocabulary.order]
    self._spelling = [b"" if name in special else spell(name) for name in names]
    self.special = [number for number, name in enumerate(names) if name in special]
    self.longest_piece = max(map(len, self._spelling), default=0)
    self._encoder = _encoder(vocabulary)

  def files(self) -> dict[str, bytes]:
    return {FILE: to_json(self.vocabulary)}

  def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
    try:
      found = self._encoder.encode_batch(list(texts), add_special_tokens=False)
    except TypeError as error:
      raise InputError(NO_TEXT) from error
    return [[self._numbers[number] for number in each.ids] for each in found]

  def decode(self, ids: Sequence[int]) -> str:
    """The text of the pieces; bytes that are not UTF-8 become U+FFFD."""
    text = b"".join([self._spelling[i] for i in ids]).decode(errors="replace")
    return text.removeprefix(" ") if self.vocabulary.kind is Kind.WORDPIECE else text

  def pieces(self, ids: Sequence[int]) -> list[str]:
    """The text of each piece, a space in front included; bytes that are no text are `<0xE2>`, for example."""
    names = [self.vocabulary.pieces[self.vocabulary.order[i]] for i in ids]
    return [_shown(self._spelling[i], name) for i, name in zip(ids, names, strict=True)]


def _shown(spelling: bytes, name: str) -> str:
  try:
    return spelling.decode() or name
  except UnicodeDecodeError:
    return "".join(f"<0x{byte:02X}>" for byte in spelling)


def _encoder(vocabulary: Vocabulary) -> Any:
  """The library's encoder, without special tokens."""
  library = plugins.library(
    "tokenizers", "the run's vocabulary needs the library tokenizers: pip install 'transformer_jax[huggingface]'"
  )
  numbers = {piece: number for number, piece in enumerate(vocabulary.pieces)}
  if vocabulary.kind is Kind.BYTES:
    encoder = library.Tokenizer(library.models.BPE(vocab=numbers, merges=list(vocabulary.merges)))
    encoder.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return encoder
  model = library.models.WordPiece(vocab=numbers, unk_token=vocabulary.unknown, max_input_chars_per_word=100)
  encoder = library.Tokenizer(model)
  encoder.normalizer = library.normalizers.BertNormalizer(
    clean_text=vocabulary.clean,
    handle_chinese_chars=vocabulary.chinese_apart,
    strip_accents=vocabulary.strip_accents,
    lowercase=vocabulary.lowercase,
  )
  encoder.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
  return encoder


def _word_of(piece: str) -> bytes:
  """The letters of a piece of WordPiece, with a space in front where a word begins."""
  return (piece[len(_CONTINUES) :] if piece.startswith(_CONTINUES) else f" {piece}").encode()


@functools.cache
def byte_letters() -> dict[str, int]:
  """The letter that stands for each byte in the names of GPT-2's pieces: itself if it prints, else one from U+0100."""
  printing = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
  others = [byte for byte in range(256) if byte not in printing]
  return {chr(byte): byte for byte in printing} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


def _bytes_of(piece: str) -> bytes:
  """The bytes of a piece; letters that stand for no byte have none."""
  letters = byte_letters()
  return bytes([letters[letter] for letter in piece if letter in letters])
