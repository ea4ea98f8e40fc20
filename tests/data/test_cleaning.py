"""The rules of cleaning by their definitions, and duplicates against a set in memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_jax.data import cleaning, duplicates
from transformer_jax.data.cleaning import Rules, Unit, rules_by_reason, script_pattern, script_share
from transformer_jax.runtime.errors import InputError


def broken(source: str, target: str, **options) -> list[str]:
  return [reason for reason, breaks in rules_by_reason(Rules(**options)).items() if breaks(source, target)]


@pytest.mark.parametrize(
  ("source", "target", "options", "expected"),
  [
    ("a", "b", {}, []),
    (" ", "b", {}, ["an empty side"]),
    ("a", "\u3000", {}, ["an empty side"]),
    ("a b", "a b c", {"min_length": 3}, ["fewer than 3 words"]),
    ("a b", "a b c", {"max_length": 3}, []),
    ("a b", "a b c", {"max_length": 2}, ["more than 2 words"]),
    ("a", "a b", {"max_length": 1}, ["more than 1 word"]),
    ("abc", "ab", {"max_length": 2, "unit": Unit.CHARACTERS}, ["more than 2 characters"]),
    ("a b c", "a", {"max_ratio": 3.5}, []),
    # OpusFilter: ratio < threshold.
    ("a b c", "a", {"max_ratio": 3.0}, ["one side at least 3 times as long as the other"]),
    ("a", "a b c", {"max_ratio": 3.0}, ["one side at least 3 times as long as the other"]),
    ("Straße  x", "STRASSE X ", {"copies": False}, ["both sides equal"]),
    ("Straße x", "Straße y", {"copies": False}, []),
    ("a dog, 12", "ein Hund", {"scripts": ("Latin", "Latin")}, []),
    ("5 µm コーヒー", "5 µm", {"scripts": ("Katakana", "Latin"), "script_share": 2 / 3}, []),
    ("a dog", "собака", {"scripts": ("Latin", "Latin")}, ["letters of another script than Latin and Latin"]),
    ("a dog 漢", "개", {"scripts": ("Latin", "Hangul"), "script_share": 0.8}, []),
    ("a d 漢", "개", {"scripts": ("Latin", "Hangul"), "script_share": 0.8}, [
      "letters of another script than Latin and Hangul"
    ]),
  ],
)  # fmt: skip
def test_a_pair_is_left_out_for_the_rule_that_it_breaks(source, target, options, expected):
  assert broken(source, target, **options) == expected


@given(st.text("aéªżж漢개µー1 "))
def test_the_share_of_a_script_is_that_of_its_letters(text):
  """The letters µ and ー are of no single script, and count for every script."""
  letters = [c in "aéªżµー" for c in text if c not in "1 "]
  assert script_share(text, script_pattern("Latin")) == (sum(letters) / len(letters) if letters else 1.0)


def test_languages_are_told_apart():
  pytest.importorskip("py3langid")
  english, german = "The little dog runs over the meadow in the park", "Der kleine Hund läuft im Park über die Wiese"
  reason = ["another language than en and de"]
  assert broken(english, german, languages=("en", "de")) == []
  assert broken(german, english, languages=("en", "de")) == broken(english, english, languages=("en", "de")) == reason
  with pytest.raises(InputError, match=r"--identify cannot tell the language 'xx', but only \w+, .*: leave it out"):
    rules_by_reason(Rules(languages=("en", "xx")))


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"min_length": 0}, "min_length is 0, but must be at least 1"),
    ({"min_length": 3, "max_length": 2}, "max_length is 2, but must be at least 3, the minimum"),
    ({"max_ratio": 1.0}, "max_ratio is 1.0"),
    ({"max_ratio": float("inf")}, "max_ratio is inf"),
    ({"script_share": 0.0}, "script_share is 0.0"),
    ({"scripts": ("Latin", "Lation")}, "Unicode has no script 'Lation'"),
    ({"scripts": ("Latin", "a}|.*")}, "Unicode has no script"),
  ],
)
def test_a_rule_that_cannot_be_is_named(options, message):
  with pytest.raises(InputError, match=message.replace("|", r"\|").replace("*", r"\*")):
    rules_by_reason(Rules(**options))


@given(st.lists(st.sampled_from(["a", "b", "", "\ud800", "ab", "c d", "e"]), max_size=30))
def test_duplicates_are_those_of_a_set(tmp_path_factory, items):
  with duplicates.Duplicates(tmp_path_factory.mktemp("digests")) as seen:
    for number, item in enumerate(items):
      seen.add(3 * number + 1, item)  # numbers may have gaps
    found = seen.repeated(3 * len(items) + 1)
  assert [bool(found[3 * number + 1]) for number in range(len(items))] == [
    item in items[:number] for number, item in enumerate(items)
  ]
  assert found.sum() == len(items) - len(set(items))


def test_a_library_that_is_missing_is_named(monkeypatch):
  monkeypatch.setitem(__import__("sys").modules, "py3langid", None)
  with pytest.raises(InputError, match=r"pip install 'transformer_jax\[clean\]'"):
    rules_by_reason(Rules(languages=("en", "de")))
  assert cleaning.EMPTY in rules_by_reason(Rules())
