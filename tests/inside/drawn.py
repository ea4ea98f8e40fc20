"""What a reader of a figure sees: that texts lie apart."""

import itertools

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text


def texts(figure: Figure) -> list[str]:
  return [text.get_text() for text in figure.axes[0].texts if text.get_text()]


def require_texts_apart(figure: Figure) -> None:
  """No two texts of a scheme overlap, and none leaves the figure."""
  _require_apart(figure, [text for text in figure.axes[0].texts if text.get_text()])


def _require_apart(figure: Figure, found: list[Text]) -> None:
  renderer = FigureCanvasAgg(figure).get_renderer()
  # A text's extent has some space above and below its letters.
  extents = [text.get_window_extent(renderer).expanded(1, 0.8) for text in found]
  for text, extent in zip(found, extents, strict=True):
    assert figure.bbox.x0 <= extent.x0 and extent.x1 <= figure.bbox.x1, text
    assert figure.bbox.y0 <= extent.y0 and extent.y1 <= figure.bbox.y1, text
  for (one, a), (other, b) in itertools.combinations(zip(found, extents, strict=True), 2):
    assert not a.overlaps(b), (one.get_text(), other.get_text())


def require_inside(figure: Figure) -> None:
  """Nothing leaves the figure at its left or right."""
  canvas = FigureCanvasAgg(figure)
  canvas.draw()
  extent = figure.get_tightbbox(canvas.get_renderer())
  assert extent.x0 >= 0 and extent.x1 <= figure.get_size_inches()[0]


def all_texts(figure: Figure) -> list[Text]:
  """The texts of a chart as it is drawn: titles, labels, ticks within the axes, legends and others."""
  canvas = FigureCanvasAgg(figure)
  canvas.draw()
  found = {id(text): text for text in figure.findobj(Text) if isinstance(text, Text)}
  for axis in figure.axes:
    for ticks, (low, high), labels in (
      (axis.get_xticks(), sorted(axis.get_xlim()), axis.get_xticklabels()),
      (axis.get_yticks(), sorted(axis.get_ylim()), axis.get_yticklabels()),
    ):
      for place, label in zip(ticks if labels else (), labels, strict=True):  # a shared axis hides its labels
        if not (axis.axison and low <= place <= high):
          found.pop(id(label), None)
  return [text for text in found.values() if text.get_text().strip() and text.get_visible()]


def require_readable(figure: Figure) -> None:
  """Letters have 8 points or more on a page of 7 inches; no two texts overlap, and none leaves the figure."""
  found = all_texts(figure)
  assert figure.get_size_inches()[0] <= 7.5
  assert min(text.get_fontsize() for text in found) >= 8
  _require_apart(figure, found)
