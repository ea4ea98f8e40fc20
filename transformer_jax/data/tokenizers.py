"""The kinds of tokenizers, by the files that they have in a run folder."""

import base64
import itertools
import json
from collections.abc import Callable, Sequence

from etils import epath

from transformer_jax.data import listed_tokenizer, sentencepiece_tokenizer, subwords, tokenizer_pair
from transformer_jax.data.sentencepiece_tokenizer import LARGEST, SentencePieceTokenizer
from transformer_jax.data.subwords import SubwordTokenizer
from transformer_jax.data.text import readable
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.data.tokenizer_pair import TokenizerPair
from transformer_jax.runtime.errors import InputError

# The names that a tokenizer's files can have.
FILES = (
  subwords.FILE,
  sentencepiece_tokenizer.FILE,
  tokenizer_pair.SOURCE,
  tokenizer_pair.TARGET,
  listed_tokenizer.PIECES,
)


def load(folder: epath.Path, read: Callable[[str, int], bytes]) -> Tokenizer:
  """The tokenizer of a run folder.

  Args:
    folder: the run folder.
    read: a function (name, most bytes) -> the content of a file of the folder.

  Raises:
    InputError: there is none, or it is damaged.
  """
  return _made(folder, lambda name: (folder / name).exists(), read)


def _made(folder: epath.Path, has: Callable[[str], bool], read: Callable[[str, int], bytes]) -> Tokenizer:
  if has(subwords.FILE):
    return SubwordTokenizer(subwords.from_json(read(subwords.FILE, LARGEST), str(folder / subwords.FILE)))
  if has(tokenizer_pair.SOURCE):
    return tokenizer_pair.load_pair(folder, read, listed=has(listed_tokenizer.PIECES))
  file = sentencepiece_tokenizer.FILE
  with readable(folder / file):
    return SentencePieceTokenizer(read(file, LARGEST), str(folder / file))


def chosen(path: str, *vocab_sizes: int) -> Tokenizer:
  """The tokenizer in files that the user chose.

  Args:
    path: `config.data.tokenizer`: a file, or two, `SOURCE,TARGET`, if there are two vocabularies.
    *vocab_sizes: those of the model's config.

  Raises:
    InputError: a file cannot be read, or its size is not that of the model's vocabulary.
  """
  paths = path.split(",") if len(vocab_sizes) > 1 else [path]
  if len(paths) != len(vocab_sizes):
    raise InputError(
      f"config.data.tokenizer is {path!r}, but must be two files, SOURCE,TARGET, with config.model.source_vocab_size"
    )
  try:
    sides = [*map(SentencePieceTokenizer.load, paths)]
  except InputError as error:
    if len(paths) == 1 and "," in path:
      raise InputError(f"{error}; two files, SOURCE,TARGET, need config.model.source_vocab_size") from error
    raise
  found = TokenizerPair(*sides) if len(sides) > 1 else sides[0]
  require_sizes(found, vocab_sizes, path)
  return found


def require_sizes(found: Tokenizer, vocab_sizes: Sequence[int], name: str) -> None:
  """Checks a tokenizer against a model's config.

  Args:
    found: the tokenizer.
    vocab_sizes: those of the config.
    name: what has the tokenizer, for messages.

  Raises:
    InputError: the model has other vocabularies.
  """
  sizes = itertools.zip_longest(reversed(found.vocab_sizes), reversed(vocab_sizes))
  keys = {"vocab_size": "", "source_vocab_size": " for the source"}
  for (key, of), (tokens, size) in zip(keys.items(), sizes, strict=False):
    if tokens != size:
      has = f"{tokens} tokens{of}" if tokens else "one vocabulary for both languages"
      raise InputError(f"config.model.{key} is {size}, but {name} has {has}: set config.model.{key}={tokens}")


def to_bytes(made: Tokenizer) -> bytes:
  """A tokenizer's files in one, for other hosts."""
  return json.dumps({name: base64.b64encode(content).decode() for name, content in made.files().items()}).encode()


def from_bytes(content: bytes) -> Tokenizer:
  """The inverse of `to_bytes`."""
  files = {name: base64.b64decode(text) for name, text in json.loads(content).items()}
  return _made(epath.Path("the main host"), files.__contains__, lambda name, most: files[name])
