"""The embedded corpus: integers written out in two languages, so that a first run needs no download."""

import copy
import functools
import hashlib
from collections.abc import Iterator
from importlib import metadata
from typing import Protocol

from transformer_jax.data import fingerprint
from transformer_jax.runtime.errors import InputError

LIMIT = 1_000_000
# Pairs of each number of digits in a split. A first run reads no more of them.
PAIRS = {"test": 400, "validation": 400, "train": 20_000}
# Of all numbers with as many digits, at most one in so many is held out for a split.
HELD_OUT = {"test": 5, "validation": 10}


class NumberPairs:
  """Integers from 0 to 999,999 in words, as many of one digit as of two, and so on to six.

  Nine in ten of all these numbers have six digits, and a model of those need
  not know the short ones. There are few short ones, so they are repeated, but
  no number is in two splits. Those of one digit are all in `train`.

  Args:
    which: the name of a split.
    source_language, target_language: codes that num2words knows.

  Raises:
    InputError: another name or another code.
  """

  def __init__(self, which: str, source_language: str, target_language: str):
    from num2words import CONVERTER_CLASSES

    if which not in PAIRS:
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
    return fingerprint.of_values(self._which, self._languages, LIMIT, PAIRS, HELD_OUT, metadata.version("num2words"))


def numbers_of(split: str) -> list[int]:
  """The numbers of a split, one of each number of digits in turn, repeated where there are too few."""
  distinct = [numbers for numbers in distinct_numbers(split).values() if numbers]
  return [numbers[i % len(numbers)] for i in range(PAIRS[split]) for numbers in distinct]


def distinct_numbers(split: str) -> dict[int, list[int]]:
  """The numbers of a split by their digits, each once, in the order of their hashes."""
  return {digits: numbers[split] for digits, numbers in _splits().items()}


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


class _Converter(Protocol):
  """What num2words writes a language with."""

  def to_cardinal(self, number: int) -> str: ...


@functools.cache
def _converter(language: str) -> _Converter:
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
def _splits() -> dict[int, dict[str, list[int]]]:
  """The numbers of each split by their digits: first what is held out, then what is trained on."""
  splits: dict[int, dict[str, list[int]]] = {}
  for digits in range(1, len(str(LIMIT))):
    left = _shuffled(range(10 ** (digits - 1) if digits > 1 else 0, 10**digits))
    held_out = {split: len(left) // share if digits > 1 else 0 for split, share in HELD_OUT.items()}
    splits[digits] = {}
    for split, pairs in PAIRS.items():
      size = min(pairs, held_out.get(split, len(left)))
      splits[digits][split], left = left[:size], left[size:]
  return splits


def _shuffled(numbers: range) -> list[int]:
  return sorted(numbers, key=lambda number: hashlib.blake2b(b"%d" % number, digest_size=8).digest())
