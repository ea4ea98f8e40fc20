"""The kinds of tokenizers, by the files that they have in a run folder."""

import base64
import json
from collections.abc import Callable

from etils import epath

from transformer_jax.data import subwords, tokenizer, tokenizer_pair
from transformer_jax.data.subwords import SubwordTokenizer
from transformer_jax.data.tokenizer import LARGEST, Tokenizer


def load(folder: epath.Path, read: Callable[[str, int], bytes]) -> Tokenizer:
  """The tokenizer of a run folder.

  Args:
    folder: the run folder.
    read: a function (name, most bytes) -> the content of a file of the folder.

  Raises:
    InputError: there is none, or it is damaged.
  """
  if (folder / subwords.FILE).exists():
    return SubwordTokenizer(subwords.from_json(read(subwords.FILE, LARGEST), str(folder / subwords.FILE)))
  if (folder / tokenizer_pair.SOURCE).exists():
    return tokenizer_pair.load_pair(folder, read)
  return Tokenizer.load(folder / tokenizer.FILE, lambda most: read(tokenizer.FILE, most))


def to_bytes(made: Tokenizer) -> bytes:
  """A tokenizer's files in one, for other hosts."""
  return json.dumps({name: base64.b64encode(content).decode() for name, content in made.files().items()}).encode()


def from_bytes(content: bytes) -> Tokenizer:
  """The inverse of `to_bytes`."""
  files = {name: base64.b64decode(text) for name, text in json.loads(content).items()}
  if tokenizer_pair.SOURCE in files:
    return tokenizer_pair.load_pair(epath.Path("the main host"), lambda name, most: files[name])
  if subwords.FILE in files:
    return SubwordTokenizer(subwords.from_json(files[subwords.FILE], subwords.FILE))
  return Tokenizer(files[tokenizer.FILE])
