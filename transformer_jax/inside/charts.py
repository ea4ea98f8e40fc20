"""The look of charts: as wide as a page, letters of 8 points or more, and lines that also differ in grey."""

from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

WIDTH = 7.0  # of a page, in inches
SIZE = 8.5  # of letters, in points
# Colours that differ in lightness too (Okabe and Ito 2008), each with a line style and a marker of its own.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#000000", "#cc79a7", "#56b4e9", "#e69f00", "#999999")
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 3)), (0, (3, 5, 1, 5)))
MARKERS = "osD^vPX*"
HATCHES = ("", "///", "...", "xxx")
GREY, PALE = "#666666", "#c8c8c8"
MAP = "Greys"  # the darker, the larger: it reads the same on paper
_LOOK: Any = {
  "font.size": SIZE,
  "axes.spines.top": False,
  "axes.spines.right": False,
}


def chart(height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, np.ndarray]:
  """A figure with a grid of axes `[rows, columns]`; the options are those of `Figure.subplots`."""
  figure = Figure(figsize=(WIDTH, height), layout="constrained")
  with rc_context(_LOOK):
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def merged(axes: np.ndarray, place: Any) -> Axes:
  """One axis in the place of several of the grid `axes`; `place` is their index, such as `np.s_[0, :]`."""
  grid, figure = axes[0, 0].get_gridspec(), axes[0, 0].figure
  for axis in axes[place]:
    axis.remove()
  with rc_context(_LOOK):
    return figure.add_subplot(grid[place])


def title(axis: Axes, text: str) -> None:
  """Writes what an axis shows above it, on its left."""
  axis.set_title(text, fontsize=9, fontweight="bold", loc="left")


def style(number: int) -> dict[str, Any]:
  """The colour and the style of the line with this number, from 0."""
  return {"color": COLOURS[number % len(COLOURS)], "linestyle": STYLES[number % len(STYLES)]}


def legend(axis: Axes, **options: Any) -> None:
  """A legend without a frame."""
  axis.legend(**{"fontsize": SIZE, "title_fontsize": SIZE, "frameon": False, "handlelength": 3, **options})


def frame(axis: Axes) -> None:
  """Draws all four sides of an axis, for heat maps, and no ticks."""
  axis.spines[:].set_visible(True)
  axis.tick_params(length=0)
