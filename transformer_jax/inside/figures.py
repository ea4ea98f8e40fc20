"""Figures of matplotlib as files, with the same bytes for the same figure; and a page for boxes and lines."""

import io
import logging
import re
import warnings
from collections.abc import Sequence
from typing import Any

from matplotlib import font_manager, rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text

# Fonts with the characters of other scripts, if they are installed.
_FONTS = ("Noto Sans CJK KR", "Noto Sans CJK JP", "Noto Sans KR", "NanumGothic", "Malgun Gothic", "AppleGothic")
_SETTINGS: Any = {"svg.hashsalt": "transformer_jax", "svg.fonttype": "path"}
# A font without a bold weight draws bold text in the weight that it has. matplotlib says so each time, for nothing.
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
_WITHOUT_DATE: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def files(figure: Figure, endings: Sequence[str] = ("png", "svg")) -> tuple[dict[str, bytes], bool]:
  """A figure as files, by the endings of their names; and whether the fonts lack a character."""
  family = fonts()
  for text in figure.findobj(Text):
    assert isinstance(text, Text)
    text.set_fontfamily(family)
    text.set_text(re.sub("[\ufffe\uffff]", "\ufffd", text.get_text()))  # the two that XML forbids
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


class Page:
  """An empty figure on which boxes, lines and texts have places and sizes in inches, from the lower left corner.

  Args:
    width, height: the size in inches.
  """

  def __init__(self, width: float, height: float):
    self.width = width
    self.figure = Figure(figsize=(width, height))
    self.axis = self.figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height))
    self.axis.axis("off")
    self._renderer = FigureCanvasAgg(self.figure).get_renderer()
    self._fonts = fonts()

  def write(
    self, x: float, y: float, text: str, width: float, size: float = 8, smallest: float = 4.5, **options: Any
  ) -> float:
    """Writes a line of text and returns its width. A text that is too wide is made smaller, and then cut.

    Args:
      x, y: the place of its middle, or of the end that the option `ha` names.
      text: the line.
      width: the most width that it may have.
      size, smallest: its size in points, and the smallest one before it is cut.
      options: other options of `matplotlib.text.Text`.
    """
    options = {"ha": "center", "va": "center", **options}
    written = self.axis.text(x, y, text, parse_math=False, family=self._fonts, size=size, **options)
    while (found := self._width(written)) > width and size > smallest:
      size = max(smallest, 0.95 * size * width / found)
      written.set_fontsize(size)
    while found > width and len(text) > 1:
      text = text[:-1]
      written.set_text(f"{text}…")
      found = self._width(written)
    return found

  def _width(self, text: Text) -> float:
    with warnings.catch_warnings():
      warnings.filterwarnings("ignore", "Glyph .* missing from")  # `files` tells it
      return text.get_window_extent(self._renderer).width / self.figure.dpi

  def box(self, x: float, y: float, width: float, height: float, **options: Any) -> None:
    """Draws a box with round corners from its lower left corner; the options are those of `FancyBboxPatch`."""
    options = {"boxstyle": "round,pad=0,rounding_size=0.05", "ec": "black", "lw": 0.8, **options}
    self.axis.add_patch(FancyBboxPatch((x, y), width, height, **options))

  def line(self, *places: tuple[float, float], arrow: bool = False, **options: Any) -> None:
    """Draws a line through places, with an arrow at its end if `arrow` is true; the options are those of `Line2D`."""
    options = {"color": "black", "lw": 0.8, "solid_joinstyle": "round", **options}
    self.axis.plot(*zip(*places, strict=True), **options)
    if arrow:
      head = {"arrowstyle": "-|>,head_width=0.16,head_length=0.28", "color": options["color"], "lw": options["lw"]}
      self.axis.annotate("", places[-1], places[-2], arrowprops={**head, "shrinkA": 0, "shrinkB": 0})
