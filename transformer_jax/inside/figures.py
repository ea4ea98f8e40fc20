"""Figures of matplotlib as files. The same figure gives the same bytes."""

import io
import warnings
from collections.abc import Sequence
from typing import Any

from matplotlib import font_manager, rc_context
from matplotlib.figure import Figure
from matplotlib.text import Text

# Fonts with the characters of other scripts, if they are installed.
_FONTS = ("Noto Sans CJK KR", "Noto Sans CJK JP", "Noto Sans KR", "NanumGothic", "Malgun Gothic", "AppleGothic")
_SETTINGS: Any = {"svg.hashsalt": "transformer_jax", "svg.fonttype": "path"}
_WITHOUT_DATE: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def files(figure: Figure, endings: Sequence[str] = ("png", "svg")) -> tuple[dict[str, bytes], bool]:
  """A figure as files, by the endings of their names; and whether the fonts lack a character."""
  family = fonts()
  for text in figure.findobj(Text):
    assert isinstance(text, Text)
    text.set_fontfamily(family)
  found = {}
  with rc_context(_SETTINGS), warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for ending in endings:
      file = io.BytesIO()
      figure.savefig(file, format=ending, dpi=160, metadata=_WITHOUT_DATE.get(ending))
      found[ending] = file.getvalue()
  return found, any("missing from" in str(warning.message) for warning in caught)


def fonts() -> list[str]:
  """The fonts of a text: matplotlib's own, DejaVu Sans, then installed ones with the characters that it lacks."""
  there = set(font_manager.get_font_names())
  return ["DejaVu Sans", *(name for name in _FONTS if name in there)]
