"""Curves over the steps of runs, as charts whose lines are SVG paths."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from transformer_jax.inside.log import Log, Series

# The plane of a chart in the units of its SVG, and the columns in which a line keeps its lowest and its highest point.
WIDTH, HEIGHT = 640, 230
LEFT, RIGHT, TOP, BOTTOM = 56, 612, 8, 206
COLUMNS = RIGHT - LEFT
_TICKS = 5


class Quantity(NamedTuple):
  """A number of the log that has a chart.

  Attributes:
    name: its key in the log.
    title: what a reader calls it.
    unit: its unit, or an explanation; may be empty.
    splits: the lines of the log that have it.
    logarithmic: whether a logarithmic axis is wanted, which takes positive values.
    from_zero: whether the axis begins with 0.
  """

  name: str
  title: str
  unit: str
  splits: tuple[str, ...]
  logarithmic: bool = False
  from_zero: bool = False


_BOTH, _TRAIN, _VALIDATION = ("train", "validation"), ("train",), ("validation",)
QUANTITIES = (
  Quantity(
    "loss",
    "Loss",
    "label-smoothed, per token or classified sentence; in training with R-Drop's divergence, if any",
    _BOTH,
  ),
  Quantity("perplexity", "Perplexity", "unsmoothed, per token or classified sentence", _BOTH, logarithmic=True),
  Quantity("bleu", "BLEU", "of validation sentences", _VALIDATION, from_zero=True),
  Quantity("f1", "F1", "of the brackets of validation sentences", _VALIDATION, from_zero=True),
  Quantity(
    "accuracy", "Accuracy", "share of tokens, or of classified sentences, predicted right", _BOTH, from_zero=True
  ),
  Quantity("learning_rate", "Learning rate", "", _TRAIN, from_zero=True),
  Quantity("gradient_norm", "Gradient norm", "of the last update", _TRAIN, logarithmic=True),
  Quantity("tokens_per_second", "Speed", "units of the loss per second, such as target tokens", _TRAIN, from_zero=True),
)


class Axis(NamedTuple):
  """A map from values to a side of the plane.

  Attributes:
    low, high: the values at the ends of the side.
    start, end: the ends of the side, in SVG's units.
    logarithmic: whether equal ratios have equal lengths.
  """

  low: float
  high: float
  start: float
  end: float
  logarithmic: bool = False

  def place(self, values: np.ndarray) -> np.ndarray:
    """Where values lie, in SVG's units."""
    low, high = self.low, self.high
    if self.logarithmic:
      values, low, high = np.log(values), math.log(low), math.log(high)
    return self.start + (values - low) / (high - low) * (self.end - self.start)

  @property
  def ticks(self) -> list[tuple[float, str]]:
    """The place and the label of each tick."""
    values = _log_ticks(self.low, self.high) if self.logarithmic else _linear_ticks(self.low, self.high)
    return [(round(float(self.place(np.array(value))), 1), _exact(value)) for value in values]


class Line(NamedTuple):
  """A series of one run in a chart, with the points that can be seen.

  Attributes:
    run: the number of the run, from 0.
    split: `train` or `validation`.
    steps, values: the points, equal to those of the log.
    path: the points as the path of an SVG.
  """

  run: int
  split: str
  steps: list[int]
  values: list[float]
  path: str


@dataclass(frozen=True)
class Chart:
  """A quantity of all runs over the steps."""

  quantity: Quantity
  x: Axis
  y: Axis
  lines: list[Line]

  @property
  def last(self) -> int:
    """The last step of any line."""
    return max(line.steps[-1] for line in self.lines)

  def data(self) -> dict[str, object]:
    """The points and the axes as JSON values, for the page's script."""
    return {
      "x": self.x._asdict(),
      "y": self.y._asdict(),
      "lines": [{name: value for name, value in line._asdict().items() if name != "path"} for line in self.lines],
    }


def charts(logs: Sequence[Log]) -> list[Chart]:
  """A chart for each quantity that a log has; all charts have the same steps."""
  found = {
    quantity: {
      (run, split): points
      for run, log in enumerate(logs)
      for split in quantity.splits
      if len((points := log.series(split, quantity.name)).steps)
    }
    for quantity in QUANTITIES
  }
  everything = [points for series in found.values() for points in series.values()]
  return [_chart(quantity, series, _x_axis(everything)) for quantity, series in found.items() if series]


def _chart(quantity: Quantity, series: dict[tuple[int, str], Series], x: Axis) -> Chart:
  y = _y_axis(quantity, np.concatenate([points.values for points in series.values()]))
  lines = []
  for (run, split), (steps, values) in series.items():
    kept = visible(x.place(steps), values, x.start, x.end, COLUMNS)
    steps, values = steps[kept], values[kept]
    places = zip(x.place(steps).tolist(), y.place(values).tolist(), strict=True)
    path = "M" + "L".join(f"{across:.1f} {down:.1f}" for across, down in places)
    if len(steps) == 1:
      path += "h0"  # a dot
    lines.append(Line(run, split, steps.tolist(), values.tolist(), path))
  return Chart(quantity, x, y, lines)


def _x_axis(series: Sequence[Series]) -> Axis:
  first = min(int(points.steps[0]) for points in series)
  last = max(int(points.steps[-1]) for points in series)
  return Axis(first, max(last, first + 1), LEFT, RIGHT)


def _y_axis(quantity: Quantity, values: np.ndarray) -> Axis:
  low, high = float(values.min()), float(values.max())
  if quantity.logarithmic and low > 0:
    margin = (high / low) ** 0.05 if high > low else 2.0
    return Axis(low / margin, high * margin, BOTTOM, TOP, logarithmic=True)
  low = min(low, 0.0) if quantity.from_zero else low
  margin = 0.05 * (high - low) or abs(high) or 1.0
  return Axis(low if quantity.from_zero else low - margin, high + margin, BOTTOM, TOP)


def visible(places: np.ndarray, values: np.ndarray, start: float, end: float, columns: int) -> np.ndarray:
  """The points that a line of `columns` pixel columns needs.

  These are the first and the last point, and the lowest and the highest point of each column. A line through them
  covers the same pixels of a column as a line through all points, up to the joints between columns (Jugel et al. 2014).

  Args:
    places: `[points]` places between `start` and `end`, increasing.
    values: `[points]`.
    start, end: the ends of the axis.
    columns: the number of columns.

  Returns:
    The increasing indices of the points that are kept.
  """
  count = len(values)
  if count <= 2 * columns:
    return np.arange(count)
  column = np.floor((places - start) * columns / (end - start)).clip(0, columns - 1)
  kept = {0, count - 1}
  for indices in np.split(np.arange(count), np.flatnonzero(np.diff(column)) + 1):
    kept |= {int(indices[values[indices].argmin()]), int(indices[values[indices].argmax()])}
  return np.array(sorted(kept))


def _linear_ticks(low: float, high: float) -> list[float]:
  """The multiples of 1, 2 or 5 times a power of ten that divide the axis into at most `_TICKS` parts."""
  rough = (high - low) / _TICKS
  power = 10.0 ** math.floor(math.log10(rough))
  step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
  return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
  """Powers of ten, and 2 and 5 times them if there are few."""
  powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
  stride = 1 + len(powers) // 8
  tens = [10.0**power for power in powers if power % stride == 0 and low <= 10.0**power <= high]
  if len(tens) > 2:
    return tens
  finer = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
  return [value for value in finer if low <= value <= high] or [low, high]


def _exact(value: float) -> str:
  """A number as `shown` gives it, with more digits if it has them."""
  exact = float(f"{value:.10g}")
  return shown(value) if exact == float(f"{value:.4g}") else f"{exact:,.10g}"


def shown(value: float) -> str:
  """A number with four significant digits, small and huge ones with an exponent."""
  if value == 0:
    return "0"
  if not 1e-3 <= abs(value) < 1e9:
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
  rounded = float(f"{value:.4g}")
  return f"{rounded:,.0f}" if abs(rounded) >= 1000 else f"{rounded:.4g}"
