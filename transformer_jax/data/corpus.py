"""Sentence pairs of every kind of corpus.

A user's own corpus is a named function that reads pairs. `register` adds one for this process. An installed package
adds one for every command if its `pyproject.toml` has

    [project.entry-points."transformer_jax.corpora"]
    my-corpus = "my_package:read_pairs"

The config chooses it with `config.data.corpus=registered` and `config.data.dataset=my-corpus`.
"""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, cast

from transformer_jax.config import Corpus, DataConfig
from transformer_jax.data.tokenizer import NO_TEXT
from transformer_jax.runtime import plugins
from transformer_jax.runtime.errors import InputError, first_line, one_line
from transformer_jax.runtime.texts import is_text

GROUP = "transformer_jax.corpora"  # the group of entry points

# (config.data, the value of its key `train`, `validation` or `test`) -> pairs of a source and a target sentence.
ReadPairs = Callable[[DataConfig, str], Iterable[tuple[str, str]]]

_REGISTERED: dict[str, ReadPairs] = {}


def register(name: str, read_pairs: ReadPairs) -> None:
  """Adds a corpus for this process: `config.data.dataset=name` with `config.data.corpus=registered`.

  `read_pairs` is called again for each reading and must give the same pairs each time.

  Raises:
    InputError: another corpus has this name.
  """
  before = _REGISTERED.get(name, read_pairs)
  # A method is another object each time, though an equal one; and a notebook may define a function again.
  if before != read_pairs and (_place(before) is None or _place(before) != _place(read_pairs)):
    raise InputError(f"there is another corpus {name!r}: choose another name")
  _REGISTERED[name] = read_pairs


def _place(function: ReadPairs) -> tuple[str, str] | None:
  """The module and the name of a function; None of one that has more than its name: a lambda, closure or method."""
  module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "<lambda>")
  more = getattr(function, "__closure__", None) or hasattr(function, "__self__") or "<" in name.rpartition(".")[2]
  return None if module is None or more else (module, name)


class SentencePairs(Protocol):
  """Source and target sentences; each iteration starts from the beginning.

  Nothing is left out: a pair with an empty side is yielded like any other, so
  that the reader can count it. No sentence contains a line feed.

  Attributes:
    name: the name of the corpus in messages.
  """

  name: str

  def __iter__(self) -> Iterator[tuple[str, str]]:
    """Reads the pairs one by one, never all at once."""
    ...

  def fingerprint(self) -> str:
    """A digest of what is read; it differs for another content, order or direction."""
    ...


def without_temperature(data: DataConfig) -> DataConfig:
  """The config without temperature sampling, which is for training alone; a `*WEIGHT` still counts."""
  return dataclasses.replace(data, temperature=1.0)


def open_corpus(data: DataConfig, which: str) -> SentencePairs:
  """The corpus that `data.train`, `data.validation` or `data.test` names.

  Args:
    data: the config of the data; for validation and test `without_temperature(data)`.
    which: the value of one of these three keys.

  Raises:
    InputError: there is no such corpus, or it has packed rows in place of a text. Errors inside a file are raised when
      it is read.
  """
  if not which.strip():
    raise InputError(f"the {data.corpus.value} corpus to read has an empty name: set config.data.train")
  languages = data.source_language, data.target_language
  # Each kind of corpus is imported only when it is used: no other kind needs its libraries.
  match data.corpus:
    case Corpus.NUMBERS:
      from transformer_jax.data.numbers import NumberPairs

      return NumberPairs(which, *languages)
    case Corpus.PREPARED if which == data.train:
      raise InputError(f"{which} has packed rows and no text: name the text that it was prepared from")
    case Corpus.TEXT | Corpus.PREPARED:
      return _text_pairs(data, which)
    case Corpus.TFDS:
      from transformer_jax.data.tfds import TfdsPairs

      return TfdsPairs(data.dataset, which, *languages, data_dir=data.data_dir)
    case Corpus.REGISTERED:
      return RegisteredPairs(data, which)
    case Corpus.TREES:
      from transformer_jax.data.trees import TreePairs

      return TreePairs(which)
    case Corpus.GRAMMAR:
      from transformer_jax.data.grammar import GrammarPairs

      return GrammarPairs(which)


def _text_pairs(data: DataConfig, which: str) -> SentencePairs:
  languages = data.source_language, data.target_language
  from transformer_jax.data.tagged import TaggedPairs, named_directions

  if data.tags:
    return TaggedPairs(which, *languages, data.temperature)
  from transformer_jax.data.text import TextPairs

  try:
    return TextPairs(which, *languages)
  except InputError as error:
    if named := named_directions(which):
      raise InputError(f"{error}; {named!r} names directions only with config.data.tags=True") from error
    raise


class RegisteredPairs:
  """The pairs that a registered function reads; a line feed inside a sentence becomes a space.

  Args:
    data: the config of the data; its `dataset` is the name of the corpus.
    which: as in `open_corpus`.

  Raises:
    InputError: no such corpus is registered or installed; while reading, the corpus cannot be read, or gives something
      else than pairs of texts.
  """

  def __init__(self, data: DataConfig, which: str):
    found = _REGISTERED.get(data.dataset) or plugins.load(GROUP, data.dataset)
    if not callable(found):
      known = ", ".join(sorted({*_REGISTERED, *plugins.names(GROUP)})) or "none"
      raise InputError(
        f"config.data.dataset is {data.dataset!r}, which is no registered corpus; there are {known}: "
        "install the package that has it"
      )
    self.name = f"{which!r} of the corpus {data.dataset!r}"
    self._data, self._which, self._read = data, which, cast(ReadPairs, found)

  def __iter__(self) -> Iterator[tuple[str, str]]:
    for number, pair in enumerate(self._pairs(), 1):
      match pair:
        case (str(source), str(target)):
          if not (is_text(source) and is_text(target)):
            raise InputError(f"{self.name}, pair {number}: {NO_TEXT}")
          yield source.replace("\n", " "), target.replace("\n", " ")
        case _:
          raise InputError(f"{self.name}, pair {number}: {one_line(repr(pair), 80)} is no pair of two texts")

  def _pairs(self) -> Iterator[object]:
    try:
      yield from self._read(self._data, self._which)
    except OSError as error:  # of a network, too; who writes files meanwhile would take it for the disk's
      raise InputError(
        f"cannot read {self.name}: {first_line(error)}; mend that, and give the command again"
      ) from error

  def fingerprint(self) -> str:
    """A digest of all pairs; it reads them all."""
    digest = hashlib.blake2b(digest_size=16)
    for pair in self:
      digest.update(json.dumps(pair).encode())
    return digest.hexdigest()


def groups_of(data: DataConfig, which: str) -> list[str]:
  """The group of each pair for separate scores, such as `3-digit numbers`; empty if the corpus has no groups."""
  if data.corpus is not Corpus.NUMBERS:
    return []
  from transformer_jax.data.numbers import numbers_of

  return [f"{len(str(number))}-digit numbers" for number in numbers_of(which)]


def example_of(data: DataConfig) -> str:
  """A source sentence to try a model of this corpus with; empty if the corpus has no fixed content."""
  if data.corpus is not Corpus.NUMBERS:
    return ""
  from transformer_jax.data.numbers import in_words

  return in_words(42, data.source_language)
