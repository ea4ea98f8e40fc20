"""The cross-attention of a sentence and its translation, as a matrix that a page draws."""

from dataclasses import dataclass

from transformer_jax.decoding.attention import CROSS, Attention
from transformer_jax.inside.attention import columns, visible
from transformer_jax.runtime.errors import InputError, one_line

# A weight below this could not be seen.
_FAINTEST = 0.02
_LONGEST_TOKEN = 16  # characters
_CELL, _CHARACTER = 18, 7.5  # in SVG's units


@dataclass(frozen=True)
class Matrix:
  """The weights of the last layer, as the mean over its heads.

  Attributes:
    query: the tokens of the translation, from above.
    key: the tokens of the source, from left.
    cells: the row, the column and the weight of each cell that can be seen.
  """

  query: list[str]
  key: list[str]
  cells: list[tuple[int, int, float]]

  cell = _CELL

  @property
  def left(self) -> float:
    """The width of the longest token of the translation, in SVG's units."""
    return 8 + max(map(_width, self.query))

  @property
  def top(self) -> float:
    """The height of the longest token of the source, which is written upwards."""
    return 8 + max(map(_width, self.key))


def _width(token: str) -> float:
  """The width of a token in SVG's units; capitals are half as wide again as other letters."""
  return _CHARACTER * (columns(token) + sum(map(str.isupper, token)) / 2)


def matrix_of(attention: Attention) -> Matrix:
  """The matrix of a model's attention.

  Raises:
    InputError: the model has no cross-attention.
  """
  if CROSS not in attention.weights:
    raise InputError("the model has no cross-attention: take one that translates")
  weights = attention.weights[CROSS][-1].mean(axis=0)
  query, key = ([_shortened(token) for token in visible(tokens)] for tokens in attention.axes(CROSS))
  cells = [
    (row, column, round(float(weight), 3))
    for row, line in enumerate(weights)
    for column, weight in enumerate(line)
    if weight >= _FAINTEST
  ]
  return Matrix(query, key, cells)


def _shortened(token: str) -> str:
  """A token in one line that is not longer than the margin of a matrix; never empty."""
  text = one_line(token) or "␣"
  return text if len(text) <= _LONGEST_TOKEN else f"{text[: _LONGEST_TOKEN - 1]}…"
