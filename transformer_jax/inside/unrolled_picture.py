"""A recurrent model unrolled in time, by matplotlib. All places and sizes are in inches."""

import math
import textwrap

from matplotlib.figure import Figure

from transformer_jax.inside.figures import Page
from transformer_jax.inside.unrolled import ATTENTION, FEEDING, NAMED, Edge, Node, Unrolled

_WIDTH, _MARGIN, _LEFT = 7.0, 0.12, 0.86  # of the page, round the picture, for the names of rows
_ROW = 0.72  # from a row to the next
_BOX, _HEIGHT, _TEXT = 0.58, 0.27, 0.2  # of a box, and the height of a token
_LINE, _CHARACTERS = 0.165, 104  # of the notes
_STYLES = {
  ATTENTION: {"color": "#555555", "lw": 0.8, "ls": (0, (5, 3)), "zorder": 0.8},
  FEEDING: {"color": "black", "lw": 1.1, "ls": ":", "zorder": 1.2},
}


def draw(model: Unrolled, title: str) -> Figure:
  """Time from left to right: the encoder, then the decoder. An arrow leads from what is read to what is computed.

  Args:
    model: the nodes and arrows.
    title: the name of the model.
  """
  notes = [line for note in model.notes for line in textwrap.wrap(note, _CHARACTERS)]
  top = max(node.y for node in model.nodes.values())
  height = 2 * _MARGIN + 0.6 + _ROW * top + 0.3 + _LINE * len(notes)
  page = Page(_WIDTH, height)
  picture = _Picture(page, model, _MARGIN + _LINE * len(notes) + 0.3)
  for edge in model.edges:
    picture.arrow(edge)
  for node in model.nodes.values():
    picture.node(node)
  for row, name in model.rows.items():
    page.write(_MARGIN, picture.y(row), name, _LEFT - 0.1, smallest=8, ha="left", color="#555555")
  page.write(_MARGIN, height - _MARGIN - 0.1, title, 6.7, ha="left", weight="bold", size=12, smallest=8)
  page.write(_MARGIN, height - _MARGIN - 0.32, model.about, 6.7, ha="left", smallest=8)
  for place, note in enumerate(notes):
    page.write(_MARGIN, _MARGIN + _LINE * (len(notes) - place - 0.5), note, 6.76, ha="left", smallest=8)
  return page.figure


class _Picture:
  """Draws nodes and arrows.

  Args:
    page: where to draw.
    model: the nodes and arrows.
    bottom: the height of row 0.
  """

  def __init__(self, page: Page, model: Unrolled, bottom: float):
    self._page, self._model, self._bottom = page, model, bottom
    last = max(node.x for node in model.nodes.values())
    first = min(node.x for node in model.nodes.values())
    self._column = (_WIDTH - _MARGIN - _LEFT - _BOX - 0.1) / (last - first)
    self._first = first

  def x(self, column: float) -> float:
    return _LEFT + _MARGIN + _BOX / 2 + (column - self._first) * self._column

  def y(self, row: float) -> float:
    return self._bottom + _ROW * row

  def node(self, node: Node) -> None:
    x, y = self.x(node.x), self.y(node.y)
    if node.boxed:
      self._page.box(x - _BOX / 2, y - _HEIGHT / 2, _BOX, _HEIGHT, fc="#f0f0f0", zorder=3)
    self._page.write(x, y, node.label, _BOX - 0.04, smallest=8, zorder=4, weight="normal" if node.boxed else "bold")

  def arrow(self, edge: Edge) -> None:
    """Draws an arrow between the sides of two nodes that are nearest to each other."""
    if edge.kind == NAMED:
      return
    start, end = self._model.nodes[edge.start], self._model.nodes[edge.end]
    (x0, y0), (x1, y1) = (self.x(start.x), self.y(start.y)), (self.x(end.x), self.y(end.y))
    half = [(_HEIGHT if node.boxed else _TEXT) / 2 for node in (start, end)]
    if start.y == end.y:
      sign = 1 if x1 > x0 else -1
      places = (x0 + sign * _BOX / 2, y0), (x1 - sign * _BOX / 2, y1)
    elif edge.kind == FEEDING:  # from h~ past the layers, down to the lowest one
      lane = (x0 + x1) / 2
      level = y1 + half[1] - 0.06
      places = (x0 + _BOX / 2, y0), (lane, y0), (lane, level), (x1 - _BOX / 2, level)
    else:
      sign = 1 if y1 > y0 else -1
      places = (x0, y0 + sign * half[0]), (x1, y1 - sign * half[1])
    *before, (x, y), (x2, y2) = places
    share = min(1.0, 0.12 / max(1e-9, math.hypot(x2 - x, y2 - y)))  # the last piece, which has the head, is solid
    almost = x2 + share * (x - x2), y2 + share * (y - y2)
    self._page.line(*before, (x, y), almost, (x2, y2), arrow=True, **_STYLES.get(edge.kind, {"zorder": 1}))
