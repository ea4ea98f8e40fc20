"""The embedded corpus: integers written out in two languages, so that a first run needs no download."""

import copy
import functools
import hashlib
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from transformer_jax.data import fingerprint
from transformer_jax.runtime.errors import InputError

LIMIT = 1_000_000
# Pairs per number of digits in each split. More would slow down a first run.
PAIRS = {"test": 400, "validation": 400, "train": 20_000}
# The n of each split: of the numbers with the same number of digits it holds out at most one in n.
HELD_OUT = {"test": 5, "validation": 10}


class NumberPairs:
  """Integers from 0 to 999,999 in words, equally many for each number of digits from one to six.

  Nine in ten of all these numbers have six digits, so a uniform sample would
  hardly have short ones. There are few short numbers, so they are repeated, but
  no number is in two splits. All numbers of one digit are in `train`.

  Args:
    which: the name of the split.
    source_language, target_language: language codes of num2words.

  Raises:
    InputError: an unknown split or language code.
  """

  def __init__(self, which: str, source_language: str, target_language: str):
    from num2words import CONVERTER_CLASSES

    if which not in PAIRS:
      raise InputError(
        f"the numbers corpus has no split {which!r}: set config.data.train, config.data.validation and "
        "config.data.test to one of train, validation, test; for files of your own start with --config=text"
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
    """A digest of what determines the text; it is faster than a digest of the text."""
    return fingerprint.of_values(self._which, self._languages, LIMIT, PAIRS, HELD_OUT, metadata.version("num2words"))


def numbers_of(split: str) -> list[int]:
  """The numbers of a split, with one, two, ... digits in turn; they are repeated if there are too few."""
  distinct = [numbers for numbers in distinct_numbers()[split].values() if numbers]
  return [numbers[i % len(numbers)] for i in range(PAIRS[split]) for numbers in distinct]


# The cache saves time as the corpus is read twice: to learn the tokenizer and to pack rows.
@functools.cache
def in_words(number: int, language: str) -> str:
  """The number written out by num2words.

  Raises:
    InputError: num2words fails on this number in this language.
  """
  try:
    return _converter(language).to_cardinal(number).strip()
  except Exception as error:  # the languages of num2words raise various exceptions
    raise InputError(
      f"num2words cannot write {number} in the language {language!r}: choose another config.data.source_language or "
      "config.data.target_language"
    ) from error


@functools.cache
def _converter(language: str) -> Any:
  """A faster copy of num2words' converter of a language.

  The original tries its names of 10^600 and many other numbers on every number;
  the copy has only the names of numbers that occur.
  """
  from num2words import CONVERTER_CLASSES

  converter = copy.copy(CONVERTER_CLASSES[language])
  if names := getattr(converter, "cards", None):
    converter.cards = type(names)((value, name) for value, name in names.items() if value < LIMIT)
  return converter


@functools.cache
def distinct_numbers() -> dict[str, dict[int, list[int]]]:
  """The numbers of each split by their number of digits, each once, in the order of their hashes."""
  splits: dict[str, dict[int, list[int]]] = {split: {} for split in PAIRS}  # first the held-out ones, then `train`
  for digits in range(1, len(str(LIMIT))):
    left = sorted(range(10 ** (digits - 1) if digits > 1 else 0, 10**digits), key=_hash)
    held_out = {split: len(left) // share if digits > 1 else 0 for split, share in HELD_OUT.items()}
    for split, pairs in PAIRS.items():
      size = min(pairs, held_out.get(split, len(left)))
      splits[split][digits], left = left[:size], left[size:]
  return splits


def _hash(number: int) -> bytes:
  return hashlib.blake2b(b"%d" % number, digest_size=8).digest()
