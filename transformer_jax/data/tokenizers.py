"""The kinds of tokenizers, by the files that they have in a run folder."""

from collections.abc import Callable

from etils import epath

from transformer_jax.data import tokenizer
from transformer_jax.data.tokenizer import Tokenizer


def load(folder: epath.Path, read: Callable[[str, int], bytes]) -> Tokenizer:
  """The tokenizer of a run folder.

  Args:
    folder: the run folder.
    read: a function (name, most bytes) -> the content of a file of the folder.

  Raises:
    InputError: there is none, or it is damaged.
  """
  return Tokenizer.load(folder / tokenizer.FILE, lambda most: read(tokenizer.FILE, most))
