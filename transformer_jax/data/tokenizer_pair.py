"""Tokenizers of two languages, each with a SentencePiece model of its own."""

import hashlib
import json
from collections.abc import Callable, Sequence

from etils import epath

from transformer_jax.data.listed_tokenizer import ListedTokenizer, PieceList
from transformer_jax.data.tokenizer import LARGEST, Tokenizer
from transformer_jax.runtime import untrusted
from transformer_jax.runtime.errors import InputError

SOURCE, TARGET, PIECES = "source.model", "target.model", "pieces.json"


class TokenizerPair(Tokenizer):
  """The tokenizers of sources and of targets. Where only one text is spoken of, it is a target.

  Args:
    source: that of sources.
    target: that of targets, with the same list of pieces.
  """

  def __init__(self, source: ListedTokenizer, target: ListedTokenizer):  # pyright: ignore[reportMissingSuperCall]
    self._source, self._target = source, target
    self.vocab_size, self.longest_piece = target.vocab_size, target.longest_piece

  @property
  def source(self) -> ListedTokenizer:
    return self._source

  @property
  def target(self) -> ListedTokenizer:
    return self._target

  def files(self) -> dict[str, bytes]:
    pieces = json.dumps(self._target.vocabulary.to_json(), ensure_ascii=False, indent=0)
    return {SOURCE: self._source.to_bytes(), TARGET: self._target.to_bytes(), PIECES: f"{pieces}\n".encode()}

  def fingerprint(self) -> str:
    both = self._source.fingerprint() + self._target.fingerprint()
    return hashlib.blake2b(both.encode(), digest_size=16).hexdigest()

  def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
    return self._target.encode_batch(texts)

  def decode(self, ids: Sequence[int]) -> str:
    return self._target.decode(ids)

  def pieces(self, ids: Sequence[int]) -> list[str]:
    return self._target.pieces(ids)


def load_pair(folder: epath.Path, read: Callable[[str, int], bytes]) -> TokenizerPair:
  """The pair whose files are in a run folder; the arguments are those of `tokenizers.load`.

  Raises:
    InputError: a file is missing or damaged.
  """
  try:
    path = folder / PIECES
    values = untrusted.json_of(path, lambda: read(PIECES, untrusted.LARGEST_JSON))
    pieces = PieceList.from_json(values, str(path))
    sides = [ListedTokenizer(read(name, LARGEST), pieces, str(folder / name)) for name in (SOURCE, TARGET)]
  except OSError as error:
    raise InputError(f"cannot read the tokenizers in {folder}: {error.strerror}; copy them from the run") from error
  return TokenizerPair(*sides)
