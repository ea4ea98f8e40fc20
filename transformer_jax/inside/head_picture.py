"""One head of self-attention drawn with its numbers, by matplotlib. All places and sizes are in inches."""

from typing import NamedTuple

import numpy as np
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from transformer_jax.inside.attention import visible
from transformer_jax.inside.figures import Page
from transformer_jax.inside.head_steps import HeadSteps
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.wording import counted

MOST_TOKENS = 7  # of a sentence, so that its weights have room for their numbers
_MARGIN, _GAP, _LABELS = 0.1, 0.16, 0.82  # round the picture, between matrices, for the tokens
_CELL, _LINE = 0.325, 0.19  # the width of a number, and the height of a row
_ABOVE, _BELOW = 0.56, 0.24  # the title of a matrix with its formula and the numbers of its columns, and below it
_COLUMNS = 4  # numbers of a vector that are shown
_NARROWEST = 0.98  # room for the title of a matrix
_WIDTH = 7.0
_WHOLE = 4  # a matrix of this width is shown whole, with the matrices that it is multiplied with
_GRID = "#bbbbbb"


class _Matrix(NamedTuple):
  """A matrix to draw.

  Attributes:
    name, formula: its title, in two lines.
    values: `[rows, columns]`.
    of_tokens: whether a row is a token.
    shaded: whether a cell is the darker, the larger its number is; they are from 0 to 1.
    framed: whether the row of the query has a frame; all rows of k and v are read.
  """

  name: str
  formula: str
  values: np.ndarray
  of_tokens: bool = True
  shaded: bool = False
  framed: bool = True


def draw(steps: HeadSteps, word: int | None = None) -> Figure:
  """All matrices in the order of their computation, from above; the rows of one query have a thick frame.

  Args:
    steps: the numbers.
    word: the number of this query, from 1; None is the one in the middle.

  Raises:
    InputError: there are more tokens than there is room for, or no such query.
  """
  n, d_k = steps.q.shape
  if n > MOST_TOKENS:
    raise InputError(
      f"the sentence has {n} tokens with its end, but the picture has room for {MOST_TOKENS}: give a shorter one"
    )
  if word is not None and not 1 <= word <= n:
    raise InputError(f"--word is {word}, but must be from 1 to {n}")
  rows = _rows(steps)
  heights = [_ABOVE + _LINE * max(len(each.values) for each in row) + _BELOW for row in rows]
  page = Page(_WIDTH, sum(heights) + 0.55 + 2 * _MARGIN)
  query = (word or (n + 1) // 2) - 1
  y = page.figure.get_size_inches()[1] - _MARGIN - 0.12
  page.write(_MARGIN, y, f"Self-attention: {steps.title}", 6.8, ha="left", weight="bold", size=11)
  y -= 0.2
  d_model = steps.x.shape[1]
  tokens = visible(steps.tokens)
  sizes = f"{counted(n, 'tokens')}, d_model = {d_model}, d_k = {d_k}"
  about = f"{sizes}; in the thick frames is query {query + 1}, {tokens[query]}"
  page.write(_MARGIN, y, about, 6.8, ha="left", smallest=8)
  y -= 0.16
  for row, height in zip(rows, heights, strict=True):
    _draw_row(page, row, y, tokens, query)
    y -= height
  return page.figure


def _rows(steps: HeadSteps) -> list[list[_Matrix]]:
  """The matrices in rows."""
  (n, d_k), plus = steps.q.shape, " + b" if steps.biased else ""
  names = ("W_Q", "W_K", "W_V")
  vectors = [
    _Matrix("x", f"[{n}, {steps.x.shape[1]}]", steps.x),
    _Matrix("q", f"x W_Q{plus}  [{n}, {d_k}]", steps.q),
    _Matrix("k", f"x W_K{plus}  [{n}, {d_k}]", steps.k, framed=False),
    _Matrix("v", f"x W_V{plus}  [{n}, {steps.v.shape[1]}]", steps.v, framed=False),
  ]
  attention = [
    _Matrix("scores", f"q kᵀ / √{d_k}", steps.scores),
    _Matrix("weights", "softmax(scores)", steps.weights, shaded=True),
    _Matrix("z", f"weights v  [{n}, {steps.v.shape[1]}]", steps.z),
  ]
  if steps.x.shape[1] > _WHOLE:
    return [vectors, attention]
  shown = [
    _Matrix(name, f"[{len(matrix)}, {matrix.shape[1]}]", matrix, of_tokens=False)
    for name, matrix in zip(names, steps.matrices, strict=True)
  ]
  return [shown, vectors, attention]


def _draw_row(page: Page, row: list[_Matrix], top: float, tokens: list[str], query: int) -> None:
  """Draws matrices beside each other, with the tokens on the left."""
  y = top - _ABOVE - _LINE / 2
  if row[0].of_tokens:
    for place, token in enumerate(tokens):
      weight = "bold" if place == query else "normal"
      text = f"{place + 1} {token}"
      page.write(_MARGIN, y - _LINE * place, text, _LABELS - 0.08, smallest=8, ha="left", weight=weight)
  left = _MARGIN + _LABELS
  if not row[0].of_tokens:  # W_Q is above q
    left += _CELL * row[0].values.shape[1] + _GAP
  for matrix in row:
    left += _draw_matrix(page, matrix, left, top, query) + _GAP


def _draw_matrix(page: Page, matrix: _Matrix, left: float, top: float, query: int) -> float:
  """Draws a matrix, of which the first columns are shown if it is wide, and returns the width that it takes."""
  square = matrix.name in ("scores", "weights")
  columns = matrix.values.shape[1]
  cut = not square and columns > _COLUMNS
  shown = _COLUMNS - 1 if cut else columns
  width = _CELL * shown + (0.2 if cut else 0)
  room = max(width, _NARROWEST)
  page.write(left, top - 0.12, matrix.name, room, smallest=8, ha="left", weight="bold", size=9)
  page.write(left, top - 0.28, matrix.formula, room + _GAP - 0.04, smallest=8, ha="left")
  for column in range(shown):
    page.write(left + _CELL * (column + 0.5), top - 0.45, f"{column + 1}", _CELL, smallest=8, color="#666666")
  values = matrix.values[np.isfinite(matrix.values)]
  whole = not matrix.shaded and bool(np.all(np.abs(values - np.rint(values)) < 1e-6))
  for place, values in enumerate(matrix.values):
    y = top - _ABOVE - _LINE * (place + 1)
    for column, value in enumerate(values[:shown]):
      shade = 1 - 0.75 * float(np.clip(value, 0, 1)) if matrix.shaded else 1.0
      x = left + _CELL * column
      colour = to_hex((shade, shade, shade))
      page.box(x, y, _CELL, _LINE, fc=colour, ec=_GRID, lw=0.5, boxstyle="square,pad=0")
      ink = "white" if shade < 0.5 else "black"
      page.write(x + _CELL / 2, y + _LINE / 2, _number(float(value), whole), _CELL, smallest=8, color=ink)
    if cut:
      page.write(left + _CELL * shown + 0.1, y + _LINE / 2, "…", 0.2, smallest=8)
  if matrix.of_tokens and matrix.framed:
    y = top - _ABOVE - _LINE * (query + 1)
    page.box(left, y, width, _LINE, fc="none", lw=1.8, zorder=3, boxstyle="square,pad=0")
  return room


def _number(value: float, whole: bool) -> str:
  """The value with at most 5 characters; "mask" for a score that is masked."""
  if np.isneginf(value):
    return "mask"
  if whole and abs(value) < 1000:
    return f"{value + 0.0:.0f}"
  digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
  return f"{round(value, digits) + 0.0:.{digits}f}"
