"""Word alignments against sets and loops, and the command `align`."""

import doctest

import numpy as np
import pytest

from tests.data.test_lists_of_pieces import listed
from tests.example_commands import read_with_tags
from transformer_jax.data import words
from transformer_jax.data.words import words_of
from transformer_jax.decoding.attention import Attention
from transformer_jax.inside import alignment
from transformer_jax.inside.alignment import Gold, error_rate, parse_gold, pharaoh
from transformer_jax.runtime.errors import InputError

COMMAND = ("align",)

SOURCE = (" a", "b", " ", "cd", " e", "</s>")  # ab cd e
TARGET = (" x", " y", "z", " ", "</s>")  # x yz


def looking(*best):
  """Two layers; in the first, target token i looks most at source token best[i] in the mean of the heads alone."""
  weights = np.full((2, 2, len(TARGET), len(SOURCE)), 0.1, np.float32)
  for token, place in enumerate(best):
    weights[0, :, token, place] = 0.5
    weights[0, token % 2, token, (place + 1) % 5] = 0.8  # one head alone looks elsewhere
    weights[0, 1 - token % 2, token, (place + 1) % 5] = 0.0
  weights[..., -1] = 0.9  # the end of the sentence is no word
  weights[..., 2] = 0.95  # nor is a space
  return Attention(SOURCE, ("<s>", *TARGET[:-1]), TARGET, {"cross": weights})


def links(attention, layer, first=0):
  """The links if the tokens are those of a tokenizer that keeps spaces."""
  source, target = (words_of(side[:-1]) for side in (attention.source, attention.target))
  return alignment.links(attention, layer, source, target, first)


@pytest.mark.parametrize(
  ("source", "words", "first"),
  [
    ("a house", [0, 1], 0),
    (">>fr<< a house", [1, 2], 1),
    (">>fr<<a house", [0, 1], 0),
    (">>it<< a", [0, 1], 0),  # it is no piece, and so text
  ],
)
def test_a_code_of_a_language_is_no_word(source, words, first):
  tokenizer = listed()
  found, counted_from = alignment.source_words(tokenizer, False, source)
  assert counted_from == first and [word for word in dict.fromkeys(found) if word is not None] == words
  assert len(found) == len(tokenizer.encode(source))
  assert alignment.language_of(tokenizer, False, source) == (">>fr<<" if "fr" in source else "")


def test_words():
  assert doctest.testmod(words).attempted and not doctest.testmod(words).failed
  assert words_of(SOURCE[:-1]) == [0, 0, None, 1, 2] and words_of(TARGET[:-1]) == [0, 1, 1, None]
  assert words_of((" a b", "  ", "c")) == [1, None, 2] and words_of(()) == []


def test_links():
  assert links(looking(3, 0, 1, 4), 0) == [(1, 0), (0, 1)]
  assert links(looking(4, 1, 3, 4), 0) == [(2, 0), (0, 1), (1, 1)]
  assert pharaoh([(1, 0), (0, 1)]) == "1-0 0-1"
  nothing = Attention(("</s>",), ("<s>",), ("</s>",), {"cross": np.ones((1, 1, 1, 1), np.float32)})
  assert links(nothing, 0) == []


def test_the_interval_is_that_of_a_share():
  """Of 100 sentences 30 are wrong: 0.3 -+ 1.96 sqrt(0.3 * 0.7 / 100)."""
  gold = [Gold(frozenset({(0, 0)}), frozenset({(0, 0)}))] * 100
  rate = error_rate([[(0, 0)]] * 70 + [[(0, 1)]] * 30, gold)
  np.testing.assert_allclose((rate.low, rate.high), (0.21, 0.39), atol=0.005)


def test_the_error_rate_is_that_of_och_and_ney():
  gold = [parse_gold("0-0 1p1 2?1", "line 1"), parse_gold("", "line 2"), parse_gold("3-0", "line 3")]
  assert gold[0] == Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 1), (2, 1)}))
  found = [[(0, 0), (1, 1), (5, 5)], [(0, 0)], []]
  rate = error_rate(found, gold)
  # A and S: 1, A and P: 2, A: 4, S: 2.
  np.testing.assert_allclose(rate[:1] + rate[3:], (1 - 3 / 6, 2 / 4, 1 / 2))
  assert rate.low <= rate.error_rate <= rate.high <= 1
  exact = error_rate([[(0, 0)]], [gold[0]])
  assert exact == (0, 0, 0, 1, 1)
  assert error_rate([[]], [gold[2]]) == (1, 1, 1, 0, 0)
  with pytest.raises(InputError, match="by hand have no sure link"):
    error_rate([[(0, 0)]], [gold[1]])
  with pytest.raises(InputError, match=r"line 7, has '1_2', but a link is 0-1"):
    parse_gold("0-0 1_2", "gold, line 7,")


def test_the_command(run, tmp_path):
  (tmp_path / "text.en").write_text("ab cd\n\nde\n")
  (tmp_path / "text.de").write_text("cd\nab\nab cd\n")
  (tmp_path / "gold").write_text("0-0 1p0\n\n0-0 0-1\n")
  argv = ["--data", tmp_path / "text"]
  status, out, err = run(*argv, "--gold", tmp_path / "gold")
  assert status == 0 and len(err) == 1 and "alignment error rate " in err[0] and err[0].endswith("3 pairs")
  first, second, third, end = out.split("\n")
  assert first in ("0-0", "1-0", "0-0 1-0") and (second, third, end) == ("", "0-0 0-1", "")
  status, _, err = run(*argv, "--layer", 2)
  assert status == 2 and "--layer is 2, but must be from 1 to 1" in err[-1]
  (tmp_path / "gold").write_text("1-1\n\n1-1\n")  # counted from 1
  status, out, err = run(*argv, "--gold", tmp_path / "gold")
  assert (status, out) == (2, "") and "gold, line 1, has a link of 1 and 1, but the source has 2 words" in err[-1]
  assert "the target 1 word: words are counted from 0" in err[-1]
  (tmp_path / "gold").write_text("0-0\n")
  status, out, err = run(*argv, "--gold", tmp_path / "gold")
  assert (status, out) == (2, "") and "gold has 1 line, but" in err[-1]


def test_a_pair_that_is_too_long_has_an_empty_line(run, translator, tmp_path):
  """The other lines stay those of their pairs."""
  long = "ab " * 200
  assert not translator.fits([("ab", long)])
  (tmp_path / "text.en").write_text("ab\nab\nab\n")
  (tmp_path / "text.de").write_text(f"cd\n{long}\ncd\n")
  (tmp_path / "gold").write_text("0-0\n0-0\n0-0\n")
  status, out, err = run("--data", tmp_path / "text", "--gold", tmp_path / "gold")
  assert (status, out) == (0, "0-0\n\n0-0\n")
  assert err[0] == f"pair 2 of {tmp_path / 'text'} is too long for the model, so its line is empty"
  assert "alignment error rate 0.200 " in err[1] and "precision 1.000, recall 0.667, 3 pairs" in err[1]
  (tmp_path / "gold").write_text("0p0\n0p0\n\n")
  status, out, [error] = run("--data", tmp_path / "text", "--gold", tmp_path / "gold")
  assert (status, out) == (2, "") and "gold has no sure link, such as 0-1" in error


@pytest.mark.parametrize(
  ("argv", "expected"), [([], "1-0 0-1"), (["--layer", 1], "0-0 0-1"), (["--layer", 3], "1-0 1-1")]
)
def test_the_layer_is_the_last_but_one_unless_it_is_given(run, translator, tmp_path, monkeypatch, argv, expected):
  """In layer 1 of three every word looks at the first one, in 2 each at the other one, in 3 at the last one."""
  for language, line in (("en", "ab cd\n"), ("de", "cd ab\n")):
    (tmp_path / f"text.{language}").write_text(line)
  source, target = (translator._tokenizer.words(text) for text in ("ab cd", "cd ab"))
  weights = np.zeros((3, 2, len(target) + 1, len(source) + 1), np.float32)
  for token, word in enumerate(target):
    for layer, other in enumerate((0, 1, 1) if word == 0 else (0, 0, 1)):
      weights[layer, :, token, source.index(other)] = 1
  monkeypatch.setattr(translator, "attention", lambda *pair: Attention((), (), (), {"cross": weights}))
  assert run("--data", tmp_path / "text", *argv)[:2] == (0, f"{expected}\n")


def test_a_number_of_thousands_of_digits_is_no_link():
  """Python itself refuses to read it."""
  with pytest.raises(InputError, match=r"line 1 has '1111.*, but a link is 0-1 if it is sure"):
    alignment.parse_gold(f"{'1' * 5000}-0", "line 1")


def test_the_tag_of_a_target_language_is_no_word(run, tmp_path, workdir, translator, monkeypatch):
  """The model reads it, and the links count the words of the sentence."""
  for language, line in (("en", "ab cd\n"), ("de", "cd ab\n")):
    (tmp_path / f"text.{language}").write_text(line)
  attention = translator.attention("<2de> ab cd", "cd ab")
  expected = links(attention, 0, first=1)
  assert {other for _, other in expected} == {0, 1} and {word for word, _ in expected} <= {0, 1}
  read_with_tags(monkeypatch)
  status, out, _ = run("--data", f"{tmp_path / 'text'}:en-de")
  assert (status, out) == (0, pharaoh(expected) + "\n")
  (tmp_path / "gold").write_text("2-0\n")
  status, _, said = run("--data", f"{tmp_path / 'text'}:en-de", "--gold", tmp_path / "gold")
  assert status == 2 and "has a link of 2 and 0, but the source has 2 words and the target 2 words" in said[-1]


def test_what_is_before_the_first_word_takes_no_link():
  weights = np.array([[[[0.8, 0.2, 0.0, 0.0], [0.5, 0.1, 0.4, 0.0], [0.0, 0.0, 0.0, 1.0]]]], np.float32)
  found = Attention(("<2de>", " a", " b", "</s>"), ("<s>", "c", " d"), ("c", " d", "</s>"), {"cross": weights})
  assert links(found, 0) == [(0, 0), (0, 1)]
  assert links(found, 0, first=1) == [(0, 0), (1, 1)]


@pytest.mark.parametrize(("link", "there"), [("1-1", True), ("2-0", False), ("0-2", False), ("2p0", False)])
def test_a_link_by_hand_is_of_words_that_are_there(link, there):
  try:
    alignment.require_words(parse_gold(link, "line 1"), "a b", "c d", "line 1")
  except InputError:
    assert not there
  else:
    assert there


def test_the_rate_is_told_with_its_interval(run, tmp_path, monkeypatch):
  for name in ("text.en", "text.de"):
    (tmp_path / name).write_text("ab\n")
  (tmp_path / "gold").write_text("0-0\n")
  monkeypatch.setattr(alignment, "error_rate", lambda *_: alignment.ErrorRate(0.5, 0.25, 0.75, 0.125, 0.375))
  status, _, [said] = run("--data", tmp_path / "text", "--gold", tmp_path / "gold")
  numbers = "0.500 (95% interval 0.250 to 0.750), precision 0.125, recall 0.375, 1 pair"
  assert status == 0 and said == f"alignment error rate {numbers}"


def test_a_draw_of_sentences_without_links_has_no_error():
  """A quarter of the draws has the second sentence alone."""
  gold = [Gold(frozenset({(0, 0)}), frozenset({(0, 0)})), Gold(frozenset(), frozenset())]
  assert error_rate([[(0, 0)], []], gold) == (0, 0, 0, 1, 1)
