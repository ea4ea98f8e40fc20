"""What a reader of a figure sees: that texts lie apart."""

import itertools

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text


def texts(figure: Figure) -> list[str]:
  return [text.get_text() for text in figure.axes[0].texts if text.get_text()]


def require_texts_apart(figure: Figure) -> None:
  """No two texts overlap, and none leaves the figure."""
  renderer = FigureCanvasAgg(figure).get_renderer()
  found: list[Text] = [text for text in figure.axes[0].texts if text.get_text()]
  # A text's extent has some space above and below its letters.
  extents = [text.get_window_extent(renderer).expanded(1, 0.8) for text in found]
  for extent in extents:
    assert figure.bbox.x0 <= extent.x0 and extent.x1 <= figure.bbox.x1
    assert figure.bbox.y0 <= extent.y0 and extent.y1 <= figure.bbox.y1
  for (one, a), (other, b) in itertools.combinations(zip(found, extents, strict=True), 2):
    assert not a.overlaps(b), (one.get_text(), other.get_text())
