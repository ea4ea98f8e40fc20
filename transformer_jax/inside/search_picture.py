"""A beam search drawn as a tree, by matplotlib. All places and sizes are in inches."""

import textwrap
from collections.abc import Sequence

from matplotlib.figure import Figure
from scipy.optimize import isotonic_regression

from transformer_jax.config import LengthPenalty
from transformer_jax.decoding.beam_search import length_penalty
from transformer_jax.decoding.search_tree import FINISHED, KEPT, PRUNED, Node, SearchTree
from transformer_jax.inside.attention import columns, visible
from transformer_jax.inside.figures import Page
from transformer_jax.runtime.errors import InputError, one_line

_MARGIN, _LEFT = 0.12, 0.3  # round the picture, and for the number of a step
_WIDTH, _BETWEEN = 0.7, 0.07  # of a node, and between two
_HEIGHTS = {KEPT: 0.34, FINISHED: 0.54, PRUNED: 0.34}
_STEP = 0.82  # from a row to the next
_LINE = 0.17
_NARROWEST = 5.2  # for the lines above and below the tree
_CHARACTERS = 17  # in an inch of such a line
_GREY, _PALE = "#666666", "#b4b4b4"
# A larger picture could not be computed as PNG.
MOST_DRAWN, _MOST_STEPS = 32, 300


def draw(tree: SearchTree, source: str) -> Figure:
  """A row for each step, from above. A node is a hypothesis, with its newest token and log P of all its tokens.

  Kept hypotheses have a frame, finished ones a double one and their score, pruned ones are grey without a frame. The
  best hypothesis is drawn with thick lines. If several were asked for, each has its rank and its text.

  Args:
    tree: the search.
    source: the sentence that is translated.

  Raises:
    InputError: the picture would be too large.
  """
  steps = max(node.step for node in tree.nodes)
  _require_size("steps", steps, _MOST_STEPS, "give a shorter sentence")
  _require_size("hypotheses in the beam", tree.options.beam_size, MOST_DRAWN, "give a smaller --beam-size")
  rows = _rows(tree)
  columns = max(map(len, rows))
  width = max(_NARROWEST, columns * (_WIDTH + _BETWEEN) + _LEFT) + 2 * _MARGIN
  above, below = _above(tree, source, width), _below(tree, width)
  height = 2 * _MARGIN + _LINE * (len(above) + len(below)) + 0.3 + steps * _STEP + _HEIGHTS[FINISHED]
  page = Page(width, height)
  y = _write(page, above, height - _MARGIN) - 0.1
  _Tree(page, tree, rows, y - _HEIGHTS[KEPT] / 2).draw()
  _write(page, below, _MARGIN + _LINE * len(below))
  return page.figure


def _require_size(what: str, found: int, most: int, advice: str) -> None:
  if found > most:
    raise InputError(f"the search has {found} {what}, but a picture has room for at most {most}: {advice}")


def _above(tree: SearchTree, source: str, width: float) -> list[str]:
  options, best = tree.options, tree.nodes[tree.best[0]]
  alpha = f"{options.length_penalty:g}"
  formula = f"((5 + |Y|) / 6)^{alpha}" if options.penalty is LengthPenalty.GNMT else f"|Y|^{alpha}"
  divisor = length_penalty(options.penalty, options.length_penalty, float(best.step))
  return [
    *_wrapped(f"source: {one_line(source)}", width),
    *(
      line
      for rank, text in enumerate(tree.texts, 1)
      for line in _wrapped(f"{'best' if rank == 1 else f'no. {rank}'}: {one_line(text)}", width)
    ),
    f"score {best.score:.3f} = log P {best.log_prob:.3f} / length penalty {divisor:.3f}",
    f"beam size {options.beam_size}, length penalty {formula} for |Y| tokens",
  ]


def _below(tree: SearchTree, width: float) -> list[str]:
  score = "its score" if len(tree.best) == 1 else "its rank and score"
  return _wrapped(
    f"A node has its newest token and log P of all its tokens. A frame: kept in the beam. Two frames: finished, with "
    f"{score}. Grey: pruned, the most probable of each step. Thick: the best hypothesis. On the left: |Y|.",
    width,
  )


def _wrapped(text: str, width: float) -> list[str]:
  wide = columns(text) > len(text)
  return textwrap.wrap(text, int((width - 2 * _MARGIN) * _CHARACTERS / (2 if wide else 1)), max_lines=6) or [""]


def _write(page: Page, lines: Sequence[str], top: float) -> float:
  """Writes lines, and returns the height of their end."""
  for place, line in enumerate(lines):
    page.write(_MARGIN, top - _LINE * (place + 0.5), line, page.width - 2 * _MARGIN, ha="left")
  return top - _LINE * len(lines)


def _rows(tree: SearchTree) -> list[list[int]]:
  """The numbers of the nodes of each step from left to right, so that no lines cross."""
  rows = [[0]]
  while True:
    place = {number: i for i, number in enumerate(rows[-1])}
    children = [number for number, node in enumerate(tree.nodes) if node.parent in place]
    if not children:
      return rows
    rows.append(sorted(children, key=lambda number: _order(tree.nodes[number], place)))


def _order(node: Node, place: dict[int, int]) -> tuple[int, float]:
  assert node.parent is not None
  return place[node.parent], -node.log_prob


def _places(wanted: Sequence[float], columns: int) -> list[float]:
  """The places in 0 to `columns` - 1 that are nearest to the wanted ones by squares, in this order, 1 or more apart."""
  # Minus the columns that the nodes before it need, a place must not be smaller than the one before.
  free = isotonic_regression([x - i for i, x in enumerate(wanted)]).x
  return [float(x) + i for i, x in enumerate(free.clip(0, columns - len(wanted)))]


class _Tree:
  """The nodes and lines of a tree.

  Args:
    page: where to draw.
    tree: the search.
    rows: the result of `_rows`.
    top: the height of the first row's middle.
  """

  def __init__(self, page: Page, tree: SearchTree, rows: Sequence[Sequence[int]], top: float):
    self._page, self._tree, self._rows, self._top = page, tree, rows, top
    self._best = {0, *tree.path(tree.best[0])}
    self._x: dict[int, float] = {}

  def draw(self) -> None:
    columns = max(map(len, self._rows))
    column = (self._page.width - 2 * _MARGIN - _LEFT) / columns
    for numbers in self._rows:
      places = _places([self._wanted(number, columns) for number in numbers], columns)
      self._x |= dict(zip(numbers, places, strict=True))
    self._x = {number: _MARGIN + _LEFT + (x + 0.5) * column for number, x in self._x.items()}
    for row, numbers in enumerate(self._rows):
      if row:
        self._page.write(_MARGIN, self._y(row), f"{row}", _LEFT, ha="left", color=_GREY)
      for number in numbers:
        self._node(number, row)

  def _wanted(self, number: int, columns: int) -> float:
    """A node is best right below its parent, the first one in the middle."""
    parent = self._tree.nodes[number].parent
    return (columns - 1) / 2 if parent is None else self._x[parent]

  def _rank(self, number: int) -> str:
    """What stands before a score: the rank, if the search was for several hypotheses and this is one of them."""
    best = self._tree.best
    return f"{best.index(number) + 1}:" if len(best) > 1 and number in best else "="

  def _y(self, row: int) -> float:
    return self._top - _STEP * row

  def _node(self, number: int, row: int) -> None:
    node, x, y, is_best = self._tree.nodes[number], self._x[number], self._y(row), number in self._best
    height, thick = _HEIGHTS[node.fate], 2.2 if is_best else 0.8
    colour = _GREY if node.fate == PRUNED else "black"
    if node.parent is not None:
      above = self._y(row - 1) - _HEIGHTS[self._tree.nodes[node.parent].fate] / 2
      style = {"color": _PALE, "ls": (0, (3, 2))} if node.fate == PRUNED else {}
      self._page.line((self._x[node.parent], above), (x, y + height / 2), lw=thick, zorder=1 + is_best, **style)
    if node.fate != PRUNED:
      self._page.box(x - _WIDTH / 2, y - height / 2, _WIDTH, height, fc="white", lw=thick, zorder=3)
    if node.fate == FINISHED:
      self._page.box(x - _WIDTH / 2 + 0.035, y - height / 2 + 0.035, _WIDTH - 0.07, height - 0.07, fc="none", zorder=3)
    [text] = visible((self._tree.newest[number],))
    lines = [text or "␣", f"{node.log_prob:.2f}"] if node.parent is not None else [text]
    if node.score is not None:
      lines.append(f"{self._rank(number)} {node.score:.3f}")
    for place, line in enumerate(lines):
      offset = ((len(lines) - 1) / 2 - place) * 0.14
      weight = "bold" if is_best and place == 0 else "normal"
      size, width = 8 - (place > 0), _WIDTH - 0.12
      self._page.write(x, y + offset, line, width, size, smallest=6, color=colour, weight=weight, zorder=4)
