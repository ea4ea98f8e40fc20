"""The embedded corpus of numbers in words."""

import subprocess
import sys

import pytest
from num2words import num2words

from transformer_jax.config import DataConfig
from transformer_jax.data import numbers
from transformer_jax.data.corpus import open_corpus
from transformer_jax.errors import InputError

SAMPLE = [*range(0, 131), *range(0, 2003, 37), *range(0, 1_000_000, 7919), 80_000, 100_000, 999_999]


@pytest.mark.parametrize("language", ["en", "de", "ko", "fr", "es", "ru", "ja"])
def test_writes_what_num2words_writes(language):
  assert [numbers.in_words(n, language) for n in SAMPLE] == [num2words(n, lang=language) for n in SAMPLE]


def test_leaves_num2words_itself_alone():
  numbers.in_words(7, "en")
  assert num2words(10**9, lang="en") == "one billion"


def test_splits_are_disjoint_whole_and_spread_over_the_range():
  splits = {name: numbers.numbers_of(name) for name in numbers.SIZES}
  assert {name: len(split) for name, split in splits.items()} == numbers.SIZES
  assert len(set().union(*splits.values())) == sum(numbers.SIZES.values())
  for split in splits.values():
    assert set(split) <= set(range(1_000_000))
    assert sum(split[:1000]) / 1000 == pytest.approx(500_000, rel=0.1)


def test_pairs_are_the_same_number_in_two_languages():
  pairs = list(open_corpus(DataConfig(source_language="de", target_language="ko"), "test"))
  expected = [(num2words(n, lang="de"), num2words(n, lang="ko")) for n in numbers.numbers_of("test")[:53]]
  assert pairs[:53] == expected
  assert len(pairs) == numbers.SIZES["test"]


def test_the_fingerprint_differs_by_split_and_languages_only():
  prints = [
    open_corpus(data, which).fingerprint()
    for data in (DataConfig(), DataConfig(source_language="de", target_language="en"), DataConfig(target_language="fr"))
    for which in numbers.SIZES
  ]
  assert len(set(prints)) == len(prints)
  assert open_corpus(DataConfig(), "test").fingerprint() == prints[0]


def test_another_process_chooses_the_same_numbers():
  code = "from transformer_jax.data.numbers import numbers_of; print(numbers_of('validation')[:11])"
  output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
  assert output.strip() == str(numbers.numbers_of("validation")[:11])


@pytest.mark.parametrize("which", ["tset", "train[:1%]"])
def test_unknown_split(which):
  with pytest.raises(InputError, match=r"no split .*train, validation, test"):
    open_corpus(DataConfig(), which)


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("language", ["xx", "english", "de_DE"])
def test_unknown_language(side, language):
  with pytest.raises(InputError, match=rf"config\.data\.{side}_language is '{language}'.*\bko\b"):
    open_corpus(DataConfig(**{"source_language": "fr", f"{side}_language": language}), "train")


def test_a_language_that_num2words_cannot_write():
  with pytest.raises(InputError, match="num2words cannot write 9973 in the language 'am'"):
    numbers.in_words(9973, "am")
