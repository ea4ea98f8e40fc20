"""The page for boxes and lines."""

from xml.etree import ElementTree

import numpy as np
import pytest

from transformer_jax.decoding.attention import Attention


def test_a_character_that_no_font_has_is_told_once_at_the_end():
  pytest.importorskip("matplotlib")
  from transformer_jax.inside.figures import Page, files

  page = Page(2, 1)
  assert page.write(1, 0.5, "\N{SYMBOL FOR SHIFT IN}", 1) > 0  # a warning is an error in tests
  assert files(page.figure)[1]
  page = Page(2, 1)
  page.write(1, 0.5, "a", 1)
  assert not files(page.figure)[1]


def test_characters_that_xml_forbids_are_replaced():
  """matplotlib writes each text into a comment of XML, too."""
  pytest.importorskip("matplotlib")
  from transformer_jax.inside.figures import Page, files

  page = Page(2, 1)
  page.write(1, 0.5, "a\ufffe\uffffb", 1)
  svg = files(page.figure)[0]["svg"]
  ElementTree.fromstring(svg)
  assert "a\ufffd\ufffdb" in svg.decode()


def test_a_font_without_a_bold_weight_says_nothing(monkeypatch, caplog):
  pytest.importorskip("matplotlib")
  from matplotlib.figure import Figure

  from transformer_jax.inside import figures

  monkeypatch.setattr(figures, "_FONTS", ("cmss10",))  # comes with matplotlib, in one weight
  figure = Figure()
  figure.text(0.5, 0.5, "가", fontweight="bold")
  assert figures.files(figure)[1]
  assert not caplog.records


def test_characters_that_xml_forbids_are_replaced_in_labels_of_ticks():
  """matplotlib sets them anew when it draws."""
  pytest.importorskip("matplotlib")
  from transformer_jax.inside.attention import Choice
  from transformer_jax.inside.attention_pictures import matrix
  from transformer_jax.inside.figures import files

  attention = Attention(("a\ufffeb", "\uffff"), ("<s>",), ("c",), {"cross": np.full((1, 1, 1, 2), 0.5, np.float32)})
  svg = files(matrix(attention, Choice("cross", 0, 0, None)))[0]["svg"]
  ElementTree.fromstring(svg)
  assert "a\ufffdb" in svg.decode()


def test_an_arrow_points_to_its_last_place():
  pytest.importorskip("matplotlib")
  from transformer_jax.inside.figures import Page

  page = Page(2, 2)
  page.line((0, 0), (1, 0), (1, 1), arrow=True)
  [head] = page.axis.texts
  assert (head.xy, head.get_position()) == ((1, 1), (1, 0))
  page.line((0, 0), (1, 0))
  assert len(page.axis.texts) == 1
