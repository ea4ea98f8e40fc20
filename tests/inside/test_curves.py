"""Charts: their points are those of the log, and no extreme is lost."""

import json
import math
import re

import numpy as np
import pytest
from etils import epath
from hypothesis import given
from hypothesis import strategies as st

from transformer_jax.inside import curves, log


@given(
  st.lists(st.tuples(st.integers(1, 19), st.floats(-1e6, 1e6)), min_size=1, max_size=211),
  st.integers(1, 13),
)
def test_every_column_keeps_its_extremes(points, columns):
  steps = np.cumsum([step for step, _ in points]).astype(float)
  values = np.array([value for _, value in points])
  start, end = steps[0], steps[0] + max(steps[-1] - steps[0], 1.0)
  kept = curves.visible(steps, values, start, end, columns)
  assert kept[0] == 0 and kept[-1] == len(values) - 1
  assert all(np.diff(kept) > 0)
  column = np.minimum((steps - start) * columns // (end - start), columns - 1)
  for here in np.unique(column):
    chosen = kept[column[kept] == here]
    every = values[column == here]
    assert values[chosen].min() == every.min() and values[chosen].max() == every.max()
  assert len(kept) <= max(2 * columns + 2, len(values) if len(values) <= 2 * columns else 0)


def test_a_spike_of_one_step_in_a_hundred_thousand_is_drawn():
  values = np.ones(100_003)
  values[70_001], values[70_003] = 31.0, -7.0
  places = np.linspace(curves.LEFT, curves.RIGHT, len(values))
  kept = curves.visible(places, values, curves.LEFT, curves.RIGHT, curves.COLUMNS)
  assert {70_001, 70_003} <= {*kept.tolist()} and len(kept) <= 2 * curves.COLUMNS + 2


def points_of(path):
  """The points of a path, `M1.0 2.0L3.0 4.0`."""
  return [[float(number) for number in point.split()] for point in re.split("[ML]", path.removesuffix("h0"))[1:]]


def test_points_and_places_are_those_of_the_log(tmp_path):
  lines = [
    {"step": 10, "split": "train", "loss": 7.25, "learning_rate": 0.5},
    {"step": 10, "split": "validation", "loss": 6.5, "bleu": 3.0},
    {"step": 30, "split": "train", "loss": 5.125, "learning_rate": 0.25},
  ]
  (tmp_path / log.FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
  found = {chart.quantity.name: chart for chart in curves.charts([log.read(epath.Path(tmp_path))])}
  assert list(found) == ["loss", "bleu", "learning_rate"]
  training, validation = found["loss"].lines
  assert (training.split, training.steps, training.values) == ("train", [10, 30], [7.25, 5.125])
  assert (validation.split, validation.steps, validation.values) == ("validation", [10], [6.5])
  assert training.path.startswith(f"M{curves.LEFT}.0 ") and f"L{curves.RIGHT}.0 " in training.path
  for chart in found.values():
    for line in chart.lines:
      places = zip(chart.x.place(np.array(line.steps)), chart.y.place(np.array(line.values)), strict=True)
      np.testing.assert_allclose(points_of(line.path), [*places], atol=0.051)
  (_, first), (_, last) = points_of(training.path)
  assert curves.TOP <= first < last <= curves.BOTTOM  # 7.25 is above 5.125, and SVG counts downwards
  assert {chart.x for chart in found.values()} == {curves.Axis(10, 30, curves.LEFT, curves.RIGHT)}


def test_an_axis_places_its_ends_and_its_middle():
  line = curves.Axis(2.0, 6.0, 100.0, 0.0)
  assert line.place(np.array([2.0, 4.0, 6.0])).tolist() == [100.0, 50.0, 0.0]
  ratio = curves.Axis(1.0, 100.0, 0.0, 10.0, logarithmic=True)
  assert ratio.place(np.array([1.0, 10.0, 100.0])) == pytest.approx([0.0, 5.0, 10.0])


@pytest.mark.parametrize("logarithmic", [False, True])
@given(low=st.floats(1e-9, 1e9), ratio=st.floats(1.001, 1e12))
def test_ticks_are_few_and_inside(low, ratio, logarithmic):
  axis = curves.Axis(low, low * ratio, 0.0, 100.0, logarithmic)
  places = [place for place, _ in axis.ticks]
  assert 1 <= len(places) <= 13 and all(-0.1 <= place <= 100.1 for place in places)
  assert places == sorted(places)


@given(st.floats(-1e12, 1e12))
def test_a_shown_number_has_four_digits(value):
  shown = float(curves.shown(value).replace(",", ""))
  assert math.isclose(shown, value, rel_tol=5e-3, abs_tol=1e-300)


@pytest.mark.parametrize(("low", "high"), [(5.0, 1e295), (1e-300, 1e298), (5e-324, 5e-324)])
def test_numbers_that_no_axis_can_have_are_left_out(low, high):
  assert [log.number(value) for value in (low, high) if value != 5.0] == [None] * (1 if low == 5.0 else 2)
  assert [log.number(value) for value in (0, 0.0, 5, -1e99, 1e-99)] == [0.0, 0.0, 5.0, -1e99, 1e-99]


@pytest.mark.parametrize(
  ("low", "high"), [(1_250_100, 1_251_000), (100_010, 100_100), (1.7341, 1.7342), (0, 7), (3e-5, 7e-4)]
)
def test_each_tick_is_labelled_with_its_own_number(low, high):
  ticks = curves.Axis(low, high, 0.0, 1e6).ticks
  assert len(ticks) > 2
  for place, label in ticks:
    value = low + place / 1e6 * (high - low)
    assert not label.endswith(".0") and float(label.replace(",", "")) == pytest.approx(value, abs=(high - low) * 1e-6)


def test_each_quantity_has_its_kind_of_axis(tmp_path):
  lines = [
    {"step": 1, "split": "train", "perplexity": 1000.0, "gradient_norm": 0.0, "accuracy": 0.75, "loss": 7.0},
    {"step": 2, "split": "train", "perplexity": 10.0, "gradient_norm": 3.0, "accuracy": 0.5, "loss": 6.0},
  ]
  (tmp_path / log.FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
  found = {chart.quantity.name: chart.y for chart in curves.charts([log.read(epath.Path(tmp_path))])}
  logarithmic = {name: axis.logarithmic for name, axis in found.items()}
  assert logarithmic == {"loss": False, "perplexity": True, "accuracy": False, "gradient_norm": False}  # 0 has no log
  assert found["accuracy"].low == 0 and 5 < found["loss"].low < 6
