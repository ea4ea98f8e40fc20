"""The next token as a picture: its bars and its texts, and the command."""

import math

import numpy as np
import pytest

from transformer_jax.decoding.next_token import NextToken

pytest.importorskip("matplotlib")


from tests.inside.drawn import all_texts, require_inside, require_readable
from transformer_jax.inside import next_picture as picture

COMMAND = ("draw", "next")


def example(source, read, values):
  pieces = [" Haus", "$x$", " ", "\n", "<0xE2>", " Donaudampfschifffahrt", "Ж", *map(str, range(31))]
  return NextToken(source, read, tuple(pieces), np.array([*values, *[0.0] * (38 - len(values))], np.float32))


@pytest.mark.parametrize("values", [[0.1, 0.2, 0.0004, 0.6], [1.0]])
def test_the_picture(values):
  found = example((" a", " b", "</s>") * 40, ("<s>", "$x$"), values)
  figure = picture.draw(found, 7)
  require_readable(figure)
  shown = [text.get_text() for text in all_texts(figure)]
  assert "31 others" in shown and any("has written: <s> $x$" in text for text in shown)
  widths = [bar.get_width() for bar in figure.axes[0].patches]
  assert widths[:-1] == sorted(widths[:-1], reverse=True) and math.isclose(sum(widths), 1, rel_tol=1e-5)


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
def test_letters_of_east_asia_do_not_leave_the_picture():
  """Their glyph is that of a missing character where no font has them, which is as wide."""
  require_inside(picture.draw(example(("今天",) * 27, ("<s>",), [1.0]), 7))


def test_each_bar_has_the_name_of_its_token():
  axis = picture.draw(example((), ("<s>",), [0.1, 0.2, 0.0004, 0.6]), 7).axes[0]
  assert [label.get_text() for label in axis.get_yticklabels()][:4] == ["⏎", "$x$", "␣Haus", "␣"]
  assert [bar.get_width() for bar in axis.patches][:4] == pytest.approx([0.6, 0.2, 0.1, 0.0004])
  numbers = {round(text.get_position()[1]): text.get_text().strip() for text in axis.texts}
  assert [numbers[place] for place in range(4)] == ["0.600", "0.200", "0.100", "below 0.001"]
  assert numbers[7] == "0.100"  # of all others together


def test_the_command(run, translator, tmp_path):
  output = tmp_path / "next.svg"
  status, out, err = run("--sentence", "abc", "--prefix", "a", "--top", 3, "--output", output)
  assert (status, out) == (0, f"{output}\n") and "274 others" in output.read_text()
  for argv, message in (
    (["--sentence", " "], "the sentence is empty"),
    ([], "--sentence is missing"),
    (["--sentence", "a", "--top", 0], "--top is 0"),
  ):
    status, out, err = run(*argv, "--output", output)
    assert (status, out) == (2, "") and message in err[-1]


def test_the_beginning_is_that_of_the_flag(run, translator, tmp_path, monkeypatch):
  asked = []

  def noted(*args):
    asked.append(args)
    return example((), ("<s>",), [1.0])

  monkeypatch.setattr(translator, "next_token", noted)
  assert run("--sentence", "abc", "--prefix", "a", "--output", tmp_path / "x.svg")[0] == 0
  assert asked == [("abc", "a")]
