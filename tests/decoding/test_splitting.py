"""Long lines in parts: nothing is lost, no part is too long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_jax.decoding.splitting import split


def without_spaces(text):
  return "".join(text.split())


def bytes_and_start(text):
  """The count of a tokenizer that has no pieces but bytes."""
  return len(text.encode()) + 1


@given(st.text(alphabet="ab. !。é漢\u2003\t", max_size=200), st.integers(min_value=5, max_value=29))
def test_parts_fit_and_hold_everything(text, longest):
  parts = split(text, longest, bytes_and_start)
  assert all(bytes_and_start(part) <= longest for part in parts)
  assert without_spaces("".join(parts)) == without_spaces(text)
  assert all(part and part == part.strip() for part in parts)


@pytest.mark.parametrize(
  ("text", "parts"),
  [
    ("One two. Three four. Five", ["One two. Three four.", "Five"]),
    ('He said "no." Then he went off.', ['He said "no."', "Then he went off."]),
    ("once upon a time there was nobody", ["once upon a time", "there was nobody"]),
    ("abcdefghijklmnopqrstuvwxyz", ["abcdefghijklmnopqrst", "uvwxyz"]),
    (
      "你好。你好吗。我很好。再见了。大家好。好不好。是的是的",
      ["你好。你好吗。我很好。再见了。大家好。", "好不好。是的是的"],
    ),
    ("3.14159 and 2.71828 are numbers", ["3.14159 and 2.71828", "are numbers"]),
    ("   ", []),
  ],
)
def test_cuts_at_the_end_of_a_sentence_else_at_a_space_else_anywhere(text, parts):
  assert split(text, 20, len) == parts


def test_a_character_of_many_tokens_is_a_part():
  assert split("a漢b", 2, lambda text: len(text.encode())) == ["a", "漢", "b"]


def test_a_part_fits_where_a_longer_one_has_fewer_tokens():
  """A piece of the vocabulary may reach over the end of a sentence."""
  parts = split("一好。你好好好", 2, lambda text: len(text.replace("好。你", "@")))
  assert parts == ["一好。你", "好好", "好"]


def test_a_part_has_at_most_16_characters_for_each_of_its_tokens():
  assert list(map(len, split("x" * 1000, 5, lambda text: 1 if text else 0)))[:-1] == [5 * 16] * (1000 // 80)


@pytest.mark.parametrize(
  "end",
  [
    *("?", "!", "…", '?"', ".'", ".)", ".]", ".»"),
    *(".\N{RIGHT DOUBLE QUOTATION MARK}", ".\N{RIGHT SINGLE QUOTATION MARK}"),
  ],
)
def test_each_sign_ends_a_sentence(end):
  assert split(f"Is it one{end} Or is it two or", 20, len) == [f"Is it one{end}", "Or is it two or"]


@pytest.mark.parametrize(
  "end",
  [
    "\N{FULLWIDTH EXCLAMATION MARK}",
    "\N{FULLWIDTH QUESTION MARK}",
    *(f"。{sign}" for sign in "'\"」』\N{FULLWIDTH RIGHT PARENTHESIS}"),
    *(f"。{sign}" for sign in "\N{RIGHT DOUBLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}"),
  ],
)
def test_a_sentence_may_end_without_a_space(end):
  assert split("好" * 6 + end + "好" * 14, 20, len) == ["好" * 6 + end, "好" * 14]
