"""The embedded corpus: integers written out in two languages, so that a first run needs no download."""

import copy
import functools
import hashlib
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from transformer_jax.data import fingerprint
from transformer_jax.errors import InputError

LIMIT = 1_000_000
# Numbers of each split, in the order in which they are taken. A first run sees no more of them in its five minutes.
SIZES = {"test": 2_000, "validation": 2_000, "train": 100_000}


class NumberPairs:
  """Integers from 0 to 999,999 in words.

  All numbers are put in the order of their hashes; `test` is the first 2,000
  of them, `validation` the next 2,000 and `train` 100,000 more, so that no
  number is in two splits and each split is spread over the whole range.

  Args:
    which: the name of a split.
    source_language, target_language: codes that num2words knows.

  Raises:
    InputError: another name or another code.
  """

  def __init__(self, which: str, source_language: str, target_language: str):
    from num2words import CONVERTER_CLASSES

    if which not in SIZES:
      raise InputError(
        f"the numbers corpus has no split {which!r}: set config.data.train, config.data.validation and "
        "config.data.test to one of train, validation, test, or config.data.corpus to text to read files"
      )
    for side, language in (("source", source_language), ("target", target_language)):
      if language not in CONVERTER_CLASSES:
        raise InputError(
          f"config.data.{side}_language is {language!r}, in which the numbers corpus cannot write: "
          f"choose one of {', '.join(sorted(CONVERTER_CLASSES))}"
        )
    self.name = f"the split {which!r} of the numbers corpus"
    self._which = which
    self._languages = source_language, target_language

  def __iter__(self) -> Iterator[tuple[str, str]]:
    source, target = self._languages
    for number in numbers_of(self._which):
      yield in_words(number, source), in_words(number, target)

  def fingerprint(self) -> str:
    """A digest of what determines the text, which is made faster than written out."""
    return fingerprint.of_values(self._which, self._languages, LIMIT, SIZES, metadata.version("num2words"))


def numbers_of(split: str) -> list[int]:
  """The numbers of a split, in the order of their hashes."""
  names = list(SIZES)
  start = sum(SIZES[name] for name in names[: names.index(split)])
  return _shuffled()[start : start + SIZES[split]]


# The corpus is read twice, to learn the tokenizer and to pack it.
@functools.cache
def in_words(number: int, language: str) -> str:
  """The number written out, as num2words does it.

  Raises:
    InputError: num2words fails on this number in this language.
  """
  try:
    return _converter(language).to_cardinal(number).strip()
  except Exception as error:  # its languages fail in various ways
    raise InputError(
      f"num2words cannot write {number} in the language {language!r}: choose another config.data.source_language or "
      "config.data.target_language"
    ) from error


@functools.cache
def _converter(language: str) -> Any:
  """What num2words writes the language with, made faster.

  It would try its names of 10^600 and many others on every number; a copy
  knows only the names of numbers that occur.
  """
  from num2words import CONVERTER_CLASSES

  converter = copy.copy(CONVERTER_CLASSES[language])
  if names := getattr(converter, "cards", None):
    converter.cards = type(names)((value, name) for value, name in names.items() if value < LIMIT)
  return converter


@functools.cache
def _shuffled() -> list[int]:
  return sorted(range(LIMIT), key=lambda number: hashlib.blake2b(b"%d" % number, digest_size=8).digest())
