"""SentencePiece: one vocabulary of byte-pair encoded pieces for both languages (§5.1), or of a unigram model.

Nothing of a text is lost: there is no normalisation, spaces are kept, and
characters without a piece are spelled in bytes. A text gets one space in front,
so that a word has the same piece at the start of a line as in the middle of it;
decoding removes that space.
"""

import io
import itertools
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from typing import Any

import sentencepiece

from transformer_jax.data.sentencepiece_rules import replacements
from transformer_jax.data.text import readable
from transformer_jax.data.tokenizer import LONGEST_PIECE, NO_TEXT, Tokenizer
from transformer_jax.model.special_tokens import BOS, EOS, PAD, UNK
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.files import path_of
from transformer_jax.runtime.untrusted import read_bytes

# The name of a model's file in a run folder.
FILE = "tokenizer.model"
# The most bytes of a model's file: several times the size of the largest vocabularies.
LARGEST = 1 << 24
_PER_GOLDEN_RATIO = 0x9E3779B97F4A7C15  # 2^64 / golden ratio
# SentencePiece writes a space as this sign, and reads the sign as a space.
SPACE = "\u2581"
# Characters for which SentencePiece drops a line when it learns: NUL, and the sign that marks unknown pieces. (The
# space sign is here because it would be learned as a space.)
_UNLEARNABLE = dict.fromkeys(map(ord, ("\0", "\u2585", SPACE)), " ")
# The most characters, of up to 4 bytes each, of a part; SentencePiece silently drops a line longer than its limit.
_LONGEST_PART = 1 << 18
# The most of the text to learn from; two million sentences of 134 bytes fill both. SentencePiece takes several times as
# much memory, and the most if no word occurs twice.
_MOST_SENTENCES, _MOST_BYTES = 2_000_000, 1 << 28
_KEY = "config.model.vocab_size"
# A text that a model changes if it was not learned with the options of `SentencePieceTokenizer.learn`.
_PROBE = "  \ufb01 e\u0301 \uff21\t\0\u00bd <s>\u2581 \u6f22\u3000 "
# The options of SentencePiece for which nothing of a text is lost, and a text always gives the same bytes.
_LOSSLESS: dict[str, Any] = {
  "normalization_rule_name": "identity",
  "remove_extra_whitespaces": False,
  "add_dummy_prefix": False,
  "byte_fallback": True,
  "character_coverage": 1.0,
  "max_sentence_length": 5 * _LONGEST_PART,  # in bytes; the default is 4,192, and longer lines are dropped
  "num_threads": 1,  # the number is written into the model
}
_SPECIAL = {"pad_id": PAD, "unk_id": UNK, "bos_id": BOS, "eos_id": EOS}


class SentencePieceTokenizer(Tokenizer):
  """A tokenizer with a SentencePiece model; `decode(encode(text)) == text` for every text.

  Args:
    model: a serialised SentencePiece model.

  Attributes:
    vocab_size: the number of pieces; PAD, UNK, BOS, EOS and 256 bytes are included.

  Raises:
    InputError: `model` is no SentencePiece model, or one without these properties.

  Example:
    >>> tokenizer = SentencePieceTokenizer.learn(["a house", "a small house"], vocab_size=274)
    >>> tokenizer.decode(tokenizer.encode("a small  mouse"))
    'a small  mouse'
  """

  def __init__(self, model: bytes, name: str = "the SentencePiece model"):
    try:
      if not model:
        raise ValueError("an empty file would be taken for none")
      self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)  # pyright: ignore[reportCallIssue]
      self._spelling = [self._spell(i) for i in range(self._processor.vocab_size())]
      has_rules = bool(replacements(model))
    except (RuntimeError, ValueError) as error:  # the pieces may be neither text nor bytes
      raise InputError(f"{name} is not a SentencePiece model: learn or choose another one") from error
    self._model = model
    self.vocab_size: int = self._processor.vocab_size()
    self.longest_piece = max(map(len, self._spelling), default=0)
    self._space_sign = [self._processor.piece_to_id(f"<0x{byte:02X}>") for byte in SPACE.encode()]
    self._check(name, has_rules)

  def _check(self, name: str, has_rules: bool) -> None:
    processor = self._processor
    numbers = [f() for f in (processor.pad_id, processor.unk_id, processor.bos_id, processor.eos_id)]
    if not self.vocab_size or numbers != [PAD, UNK, BOS, EOS]:
      raise InputError(
        f"{name} has the numbers {numbers} for padding, unknown, begin and end of sentence, not "
        f"{[PAD, UNK, BOS, EOS]}: learn it with --pad_id=0 --unk_id=1 --bos_id=2 --eos_id=3"
      )
    if self.longest_piece > LONGEST_PIECE:  # an output of many long ones would fill the memory
      raise InputError(
        f"{name} has a piece of {self.longest_piece:,} bytes, but one may have at most {LONGEST_PIECE:,}: learn or "
        "choose another one"
      )
    if has_rules or self.decode(self.encode(_PROBE)) != _PROBE:
      raise InputError(
        f"{name} does not give back every text: learn it with --normalization_rule_name=identity "
        "--remove_extra_whitespaces=false --add_dummy_prefix=false --byte_fallback=true"
      )

  @classmethod
  def learn(
    cls,
    sentences: Iterable[str],
    vocab_size: int,
    kind: str = "bpe",
    symbols: Sequence[str] = (),
    key: str = _KEY,
  ) -> "SentencePieceTokenizer":
    """Learns the pieces from text; the same text gives the same pieces.

    Args:
      sentences: the text, which is read once; of more than two million sentences, or of more than 256 MiB, an evenly
        spread part is taken.
      vocab_size: the exact number of pieces to learn.
      kind: `bpe` for byte-pair encoding, `unigram` for a unigram language model.
      symbols: texts that are one piece each, wherever they occur.
      key: the key that `vocab_size` is the value of, for messages.

    Raises:
      InputError: the text is empty, has too few different tokens, or has more characters than `vocab_size` allows.
    """
    model = io.BytesIO()
    pieces = [text.replace(" ", SPACE) for text in symbols]
    defined: dict[str, Any] = {"user_defined_symbols": pieces} if pieces else {}
    texts = _spread(sentences, _MOST_SENTENCES, _MOST_BYTES)
    first = [*itertools.islice(texts, 1)]  # it reads all sentences, and errors of reading are not SentencePiece's
    try:
      sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(" " + part for text in itertools.chain(first, texts) for part in _learnable(text)),
        model_writer=model,
        vocab_size=vocab_size,
        model_type=kind,
        **_LOSSLESS,
        **_SPECIAL,
        minloglevel=3,
        **defined,
      )
    except RuntimeError as error:
      raise _explained(error, vocab_size, key) from error
    return cls(model.getvalue())

  @classmethod
  def load(cls, path: str | PathLike) -> "SentencePieceTokenizer":
    """Reads a model.

    Args:
      path: the path of the file.

    Raises:
      InputError: the file is missing, or not a model that the class accepts.
    """
    file = path_of(path)
    with readable(file):
      return cls(read_bytes(file, LARGEST), str(path))

  def to_bytes(self) -> bytes:
    """The serialised model; `SentencePieceTokenizer(model)` is the same tokenizer."""
    return self._model

  def files(self) -> dict[str, bytes]:
    return {FILE: self._model}

  def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
    """`encode` for many texts at once, on all cores."""
    # SentencePiece would read the sign as a space, so it is spelled in bytes between its neighbours.
    parts = [(" " + text).split(SPACE) if text else [] for text in texts]
    flat = [part for text in parts for part in text]
    try:
      encoded = iter(self._processor.encode(flat, num_threads=-1 if len(flat) > 1 else 1))
    except TypeError as error:  # everything else can be spelled in bytes
      raise InputError(NO_TEXT) from error
    return [self._join([next(encoded) for _ in text]) for text in parts]

  def decode(self, ids: Sequence[int]) -> str:
    """The text of the pieces; UNK, which `encode` never gives, is U+FFFD."""
    return b"".join([self._spelling[i] for i in ids]).decode(errors="replace").removeprefix(" ")

  def pieces(self, ids: Sequence[int]) -> list[str]:
    """The text of each piece; PAD, UNK, BOS and EOS are `<pad>`, `<unk>`, `<s>` and `</s>`."""
    return texts_of(self._processor, [self._processor.id_to_piece(i) for i in ids])

  def _join(self, parts: list[list[int]]) -> list[int]:
    """The encoded parts of a text with the space sign's bytes between them; an empty text has no parts."""
    joined: list[int] = []
    for number, part in enumerate(parts):
      joined += part if number == 0 else self._space_sign + part
    return joined

  def _spell(self, i: int) -> bytes:
    """The bytes that a piece stands for."""
    processor = self._processor
    if processor.is_control(i):
      return b""
    if processor.is_unknown(i):
      return "\ufffd".encode()
    piece = processor.id_to_piece(i)
    return bytes([int(piece[1:-1], 16)]) if processor.is_byte(i) else piece.replace(SPACE, " ").encode()


def texts_of(processor: sentencepiece.SentencePieceProcessor, names: Sequence[str]) -> list[str]:
  """The text of each piece by its name in a SentencePiece model, as of `Tokenizer.pieces`."""
  bytes_ = map(processor.is_byte, map(processor.piece_to_id, names))
  return [_character(name) if byte else name.replace(SPACE, " ") for name, byte in zip(names, bytes_, strict=True)]


def _character(byte: str) -> str:
  """The character of a byte piece such as `<0x41>`; the piece's name if the byte alone is none."""
  value = int(byte[1:-1], 16)
  return chr(value) if value < 128 else byte


def _learnable(text: str) -> Iterator[str]:
  """Cuts a text into parts that are short enough for SentencePiece, at spaces if there are any."""
  text = text.translate(_UNLEARNABLE)
  while len(text) > _LONGEST_PART:
    end = text.rfind(" ", 1, _LONGEST_PART)
    yield text[: _LONGEST_PART if end < 0 else end]
    text = text[_LONGEST_PART if end < 0 else end + 1 :]
  yield text


def _spread(sentences: Iterable[str], most: int, most_bytes: int) -> Iterator[str]:
  """All sentences, or a third, a ninth, ... of them, so that there are at most `most` and at most `most_bytes` bytes.

  Sentence i has the place i / golden ratio, modulo 1, and those whose places are in the lowest third, ninth, ... are
  kept. They are evenly spread over the text, and over each of several texts that are read in turns.
  """
  kept: list[bytes] = []
  places = array("Q")  # in units of 2^-64
  size, limit = 0, 1 << 64
  for i, sentence in enumerate(sentences):
    place = i * _PER_GOLDEN_RATIO % (1 << 64)
    if place >= limit or not sentence.strip():
      continue
    text = sentence.encode(errors="surrogatepass")
    while kept and place < limit and (len(kept) == most or size + len(text) > most_bytes):
      limit //= 3
      lowest = [each < limit for each in places]
      kept, places = [*itertools.compress(kept, lowest)], array("Q", itertools.compress(places, lowest))
      size = sum(map(len, kept))
    if place < limit:
      kept.append(text)
      places.append(place)
      size += len(text)
  kept.reverse()
  while kept:  # a sentence that SentencePiece has copied is not held twice
    yield kept.pop().decode(errors="surrogatepass")


def _explained(error: RuntimeError, vocab_size: int, key: str) -> InputError:
  """An InputError for an error of SentencePiece, with the numbers of its message."""
  message = str(error)
  if found := re.search(r"Please set it to a value <= (\d+)", message):
    return InputError(
      f"{key} is {vocab_size}, but the training text gives only {found[1]} different tokens: set {key} to at most "
      f"{found[1]}"
    )
  if found := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
    return InputError(
      f"{key} is {vocab_size}, but all bytes and the characters of the text need {found[1]}: set {key} to at least "
      f"{found[1]}"
    )
  if "insert_id" in message:  # there are fewer than the special tokens
    return InputError(f"{key} is {vocab_size}, but all bytes and the special tokens need 260: set {key} to more")
  if "Unable to cast" in message:
    return InputError("the training text has half of a surrogate pair, which is no text: decode its bytes again")
  if "!sentences_.empty()" in message:
    return InputError(
      "the training text has no sentence to learn a vocabulary from: its files are blank, or their weights select none"
    )
  return InputError(f"SentencePiece cannot learn a vocabulary of {key} = {vocab_size}: {message}")
