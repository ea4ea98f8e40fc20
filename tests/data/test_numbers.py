"""The embedded corpus of numbers in words."""

import hashlib
import subprocess
import sys
from collections import Counter

import pytest
from num2words import num2words

from transformer_jax.config import Corpus, DataConfig
from transformer_jax.data import numbers
from transformer_jax.data.corpus import example_of, groups_of, open_corpus
from transformer_jax.runtime.errors import InputError

SAMPLE = [*range(0, 131), *range(0, 2003, 37), *range(0, 1_000_000, 7919), 80_000, 100_000, 999_999]


@pytest.mark.parametrize("language", ["en", "de", "ko", "fr", "es", "ru", "ja"])
def test_writes_what_num2words_writes(language):
  assert [numbers.in_words(n, language) for n in SAMPLE] == [num2words(n, lang=language) for n in SAMPLE]


def test_leaves_num2words_itself_alone():
  numbers.in_words(7, "en")
  assert num2words(10**9, lang="en") == "one billion"


SPLITS = ("test", "validation", "train")


@pytest.mark.long
def test_no_number_is_in_two_splits():
  splits = [set(numbers.numbers_of(name)) for name in SPLITS]
  assert len(set.union(*splits)) == sum(map(len, splits))
  assert set.union(*splits) <= set(range(1_000_000))
  assert set(range(1000)) <= set.union(*splits) and set(range(10)) <= splits[-1]


@pytest.mark.parametrize(("name", "digits"), [("test", 5), ("validation", 5), ("train", 6)])
def test_a_split_is_spread_evenly_over_the_number_of_digits(name, digits):
  split = numbers.numbers_of(name)
  pairs = len(split) // digits
  assert Counter(len(str(number)) for number in split) == dict.fromkeys(range(7 - digits, 7), pairs)
  # Any part of it is: the tokenizer and a validation of 200 sentences see the first ones.
  assert Counter(len(str(number)) for number in split[: 13 * digits]) == dict.fromkeys(range(7 - digits, 7), 13)
  for length in range(7 - digits, 7):  # no number is repeated while another one waits
    times = Counter(number for number in split if len(str(number)) == length).values()
    assert max(times) - min(times) <= 1


def test_enough_numbers_are_held_out_and_most_are_trained_on():
  distinct = {name: Counter(len(str(number)) for number in set(numbers.numbers_of(name))) for name in SPLITS}
  assert distinct["test"] == {2: 18, 3: 180, 4: 400, 5: 400, 6: 400}
  assert distinct["validation"] == {2: 9, 3: 90, 4: 400, 5: 400, 6: 400}
  assert distinct["train"] == {1: 10, 2: 63, 3: 630, 4: 8200, 5: 20_000, 6: 20_000}


def test_the_first_digit_is_spread_too():
  for name in SPLITS:
    six = [number for number in numbers.numbers_of(name) if number >= 100_000]
    assert sum(six) / len(six) == pytest.approx(550_000, rel=0.03)


def test_each_pair_has_the_group_of_its_number():
  groups = groups_of(DataConfig(), "test")
  assert groups == [f"{len(str(number))}-digit numbers" for number in numbers.numbers_of("test")]
  assert groups_of(DataConfig(corpus=Corpus.TEXT, train="a", test="b"), "b") == []


@pytest.mark.parametrize(
  ("language", "example"), [("en", "forty-two"), ("de", "zweiundvierzig"), ("fr", "quarante-deux")]
)
def test_the_example_is_in_the_source_language(language, example):
  assert example_of(DataConfig(source_language=language, target_language="ko")) == example
  assert example_of(DataConfig(corpus=Corpus.TEXT, source_language=language, target_language="ko", train="a")) == ""


def test_pairs_are_the_same_number_in_two_languages():
  pairs = list(open_corpus(DataConfig(source_language="de", target_language="ko"), "test"))
  expected = [(num2words(n, lang="de"), num2words(n, lang="ko")) for n in numbers.numbers_of("test")[:53]]
  assert pairs[:53] == expected
  assert len(pairs) == len(numbers.numbers_of("test"))


def test_the_fingerprint_differs_by_split_and_languages_only():
  prints = [
    open_corpus(data, which).fingerprint()
    for data in (DataConfig(), DataConfig(source_language="de", target_language="en"), DataConfig(target_language="fr"))
    for which in SPLITS
  ]
  assert len(set(prints)) == len(prints)
  assert open_corpus(DataConfig(), "test").fingerprint() == prints[0]


@pytest.mark.parametrize(("name", "change"), [("PAIRS", ("train", 7)), ("HELD_OUT", ("test", 3))])
def test_the_fingerprint_changes_with_the_numbers(monkeypatch, name, change):
  before = open_corpus(DataConfig(), "train").fingerprint()
  monkeypatch.setitem(getattr(numbers, name), *change)
  assert open_corpus(DataConfig(), "train").fingerprint() != before


@pytest.mark.long
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


def test_the_numbers_that_are_held_out_stay_the_same():
  """Otherwise a run would be tested on what it has learned: of two digits those with the smallest hashes."""
  hashed = sorted(range(10, 100), key=lambda number: hashlib.blake2b(str(number).encode(), digest_size=8).digest())
  found = {name: [n for n in dict.fromkeys(numbers.numbers_of(name)) if 9 < n < 100] for name in SPLITS}
  assert found == {"test": hashed[:18], "validation": hashed[18:27], "train": hashed[27:]}
