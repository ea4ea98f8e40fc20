"""The kinds of tokenizers, by the files that they have in a run folder."""

from collections.abc import Callable

from etils import epath

from transformer_jax.data import subwords, tokenizer
from transformer_jax.data.subwords import SubwordTokenizer
from transformer_jax.data.tokenizer import LARGEST, Tokenizer


def of_bytes(content: bytes) -> Tokenizer:
  """The tokenizer whose `to_bytes` are these.

  Raises:
    InputError: they are damaged.
  """
  if content[:1] == b"{":  # no SentencePiece model begins like that
    return SubwordTokenizer(subwords.from_json(content, subwords.FILE))
  return Tokenizer(content)


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
  return Tokenizer.load(folder / tokenizer.FILE, lambda most: read(tokenizer.FILE, most))
