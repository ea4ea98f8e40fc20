"""Sentence pairs, wherever they come from."""

from collections.abc import Iterator
from typing import Protocol

from transformer_jax.config import Corpus, DataConfig
from transformer_jax.runtime.errors import InputError


class SentencePairs(Protocol):
  """Source and target sentences; reading them again starts from the beginning.

  Nothing is left out: a pair with an empty side is yielded like any other, for
  the reader to count. No sentence has a line feed in it.

  Attributes:
    name: for messages.
  """

  name: str

  def __iter__(self) -> Iterator[tuple[str, str]]:
    """Reads the pairs one after another, never all at once."""
    ...

  def fingerprint(self) -> str:
    """A digest of what is read; another content, order or direction has another one."""
    ...


def open_corpus(data: DataConfig, which: str) -> SentencePairs:
  """The corpus that `data.train`, `data.validation` or `data.test` names.

  Args:
    data: where sentence pairs come from.
    which: the value of one of those three keys.

  Raises:
    InputError: there is no such corpus. What is wrong inside a file shows when
      it is read.
  """
  if not which.strip():
    raise InputError(f"the {data.corpus.value} corpus to read has an empty name: set config.data.train")
  languages = data.source_language, data.target_language
  # A kind of corpus is imported where it is asked for: no other needs its libraries.
  match data.corpus:
    case Corpus.NUMBERS:
      from transformer_jax.data.numbers import NumberPairs

      return NumberPairs(which, *languages)
    case Corpus.TEXT:
      from transformer_jax.data.text import TextPairs

      return TextPairs(which, *languages)
    case Corpus.TFDS:
      from transformer_jax.data.tfds import TfdsPairs

      return TfdsPairs(data.dataset, which, *languages, data_dir=data.data_dir)


def groups_of(data: DataConfig, which: str) -> list[str]:
  """The group of each pair, by which scores are told apart, as in `3-digit numbers`; empty if a corpus has none."""
  if data.corpus is not Corpus.NUMBERS:
    return []
  from transformer_jax.data.numbers import numbers_of

  return [f"{len(str(number))}-digit numbers" for number in numbers_of(which)]


def example_of(data: DataConfig) -> str:
  """A source sentence with which to try a model of this corpus; empty where only the user knows one."""
  if data.corpus is not Corpus.NUMBERS:
    return ""
  from transformer_jax.data.numbers import in_words

  return in_words(42, data.source_language)
