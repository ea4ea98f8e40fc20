"""Pictures of experiments, from the committed results: readable at the width of a page, with lines apart in grey."""

import json

import pytest

from tests.paper.documented import DOCS

pytest.importorskip("matplotlib", reason="the extra `benchmarks` installs it")
from tests.inside.drawn import all_texts, require_readable

pytestmark = pytest.mark.long
RESULTS = DOCS / "results"


def lines_of(figure):
  """The markers and dashes of the lines in the legends."""
  legends = [*figure.legends, *(axis.get_legend() for axis in figure.axes if axis.get_legend())]
  return [(line.get_marker(), line.get_linestyle()) for legend in legends for line in legend.get_lines()]


@pytest.fixture(params=["random", "trained", "exposure", "by length", "training"])
def figure(request, program):
  if request.param in ("random", "trained"):
    points = json.loads((RESULTS / "gradients" / f"{request.param}.json").read_text())["points"]
    return program("gradient_flow").picture({(point["model"], point["states"]): point["norms"] for point in points})
  if request.param == "exposure":
    return program("exposure_bias").picture(json.loads((RESULTS / "exposure" / "trained.json").read_text())["points"])
  lineage = program("lineage")
  files = sorted((RESULTS / "lineage").glob("*-?.json"))
  results = [json.loads(file.read_text()) for file in (*files, RESULTS / "lineage" / "ibm_model_1.json")]
  if request.param == "by length":
    return lineage.picture_by_length(results)
  times = {result["model"]: result["seconds_of_an_update"] for result in results[:-1]}
  return lineage.picture_of_training(results[:-1], times)


def test_pictures_are_readable_in_grey(figure):
  require_readable(figure)
  lines = lines_of(figure)
  assert lines and len(lines) == len(set(lines))


def test_a_line_below_the_picture_is_named(program):
  curves = {("one", "target"): [1.0, 1e-3], ("two", "target"): [1e-20, 1e-21], ("one", "source"): [1.0, 1.0]}
  figure = program("gradient_flow").picture({**curves, ("two", "source"): [1e-3, 1e-3]})
  assert [text.get_text() for axis in figure.axes for text in axis.texts] == ["below the picture:\ntwo"]


def test_positions_with_few_tokens_are_not_drawn(program):
  point = {"run": "runs/one", "tokens": [200, 100, 99, 100], "reference": [1.0] * 4, "own": [2.0] * 4}
  figure = program("exposure_bias").picture([point])
  assert [list(line.get_xdata()) for line in figure.axes[0].lines] == [[1, 2]] * 2
  assert "one, reads its own output" in [text.get_text() for text in all_texts(figure)]
