"""Tokenizers of two languages, each with a SentencePiece model of its own."""

from collections.abc import Callable, Sequence

from etils import epath

from transformer_jax.data import fingerprint
from transformer_jax.data.listed_tokenizer import PIECES, ListedTokenizer, PieceList, to_json_file
from transformer_jax.data.sentencepiece_tokenizer import LARGEST, SentencePieceTokenizer
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.runtime import untrusted
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.values import Json

SOURCE, TARGET = "source.model", "target.model"

OneLanguage = SentencePieceTokenizer | ListedTokenizer


class TokenizerPair(Tokenizer):
  """The tokenizers of sources and of targets. Where only one text is spoken of, it is a target.

  Args:
    source: that of sources.
    target: that of targets. If both have one list of pieces, it is one vocabulary, otherwise there are two.
  """

  def __init__(self, source: OneLanguage, target: OneLanguage):
    self._source, self._target = source, target
    self.vocab_size, self.longest_piece = target.vocab_size, target.longest_piece
    self.special, self.suppressed, self.codes = target.special, target.suppressed, source.codes

  @property
  def source(self) -> OneLanguage:
    return self._source

  @property
  def target(self) -> OneLanguage:
    return self._target

  @property
  def vocab_sizes(self) -> tuple[int, ...]:
    return (self.vocab_size,) if self._one_list() else (self._source.vocab_size, self.vocab_size)

  def files(self) -> dict[str, bytes]:
    found = {SOURCE: self._source.to_bytes(), TARGET: self._target.to_bytes()}
    if isinstance(self._source, ListedTokenizer) and isinstance(self._target, ListedTokenizer):
      source, target = (side.vocabulary.to_json() for side in (self._source, self._target))
      lists = target if self._one_list() else {"source": source, "target": target}
      found[PIECES] = to_json_file(lists)
    return found

  def fingerprint(self) -> str:
    both = self._source.fingerprint() + self._target.fingerprint()
    return fingerprint.of_bytes(both.encode())

  def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
    return self._target.encode_batch(texts)

  def decode(self, ids: Sequence[int]) -> str:
    return self._target.decode(ids)

  def pieces(self, ids: Sequence[int]) -> list[str]:
    return self._target.pieces(ids)

  def _one_list(self) -> bool:
    sides = self._source, self._target
    lists = [side.vocabulary for side in sides if isinstance(side, ListedTokenizer)]
    return len(lists) == 2 and lists[0] is lists[1]


def load_pair(folder: epath.Path, read: Callable[[str, int], bytes], *, listed: bool) -> TokenizerPair:
  """The pair whose files are in a run folder; the arguments are those of `tokenizers.load`.

  Args:
    folder: the run folder.
    read: a function (name, most bytes) -> the content of a file of the folder.
    listed: whether the folder has the pieces' numbers in a file of their own.

  Raises:
    InputError: a file is missing or damaged.
  """
  paths = {name: str(folder / name) for name in (SOURCE, TARGET)}
  try:
    if not listed:
      return TokenizerPair(*(SentencePieceTokenizer(read(name, LARGEST), path) for name, path in paths.items()))
    lists = _lists(untrusted.json_of(folder / PIECES, lambda: read(PIECES, untrusted.LARGEST_JSON)), folder / PIECES)
    models = [(read(name, LARGEST), path) for name, path in paths.items()]
  except OSError as error:
    raise InputError(f"cannot read the tokenizers in {folder}: {error.strerror}; copy them from the run") from error
  return TokenizerPair(*(ListedTokenizer(model, own, path) for (model, path), own in zip(models, lists, strict=True)))


def _lists(values: Json, path: epath.Path) -> tuple[PieceList, PieceList]:
  """The lists of the source and of the target, which may be one."""
  if isinstance(values, dict) and values.keys() == {"source", "target"}:
    source, target = (PieceList.from_json(values[side], f"{path}: {side}") for side in ("source", "target"))
    return source, target
  both = PieceList.from_json(values, str(path))
  return both, both
