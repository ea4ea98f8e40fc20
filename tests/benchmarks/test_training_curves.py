"""benchmarks/training_curves.py draws what the logs say, and programs give it the right logs."""

import json

import pytest


def log(*validations):
  """The lines of a log: (step, perplexity) of each validation, and a line of training before it."""
  lines = []
  for step, perplexity in validations:
    lines.append({"split": "train", "step": step - 1, "loss": perplexity / 10})
    lines.append({"split": "validation", "step": step, "perplexity": perplexity})
  return lines


def test_curves_are_those_of_the_logs(program, tmp_path):
  pytest.importorskip("matplotlib")
  from tests.inside.drawn import require_readable

  curves = program("training_curves")
  short, long = log((3, 50.0), (7, 20.0)), log(*((step, 900.0 / step) for step in range(2, 13)))
  panels = [
    curves.Panel({"one": [short, long], "two": [long]}, "perplexity", "perplexity"),
    curves.Panel({"one": [short]}, "loss", "loss", "train"),
  ]
  first, second = curves.figure(panels).axes
  assert (first.get_yscale(), second.get_yscale()) == ("log", "linear")
  drawn = [(line.get_label(), list(line.get_xdata()), list(line.get_ydata())) for line in first.lines]
  of_long = list(range(2, 13)), [900.0 / step for step in range(2, 13)]
  assert drawn[0] == ("one", [3, 7], [50.0, 20.0]) and drawn[2] == ("two", *of_long)
  assert drawn[1][1:] == of_long and drawn[1][0].startswith("_")  # the legend has each name once
  colours = [line.get_color() for line in first.lines]
  assert colours[0] == colours[1] != colours[2] and second.lines[0].get_color() == colours[0]
  [line] = second.lines
  assert (list(line.get_xdata()), list(line.get_ydata())) == ([2, 6], [5.0, 2.0])
  require_readable(curves.figure(panels))
  curves.draw(panels, tmp_path / "a.svg")
  curves.draw(panels, tmp_path / "b.svg")
  assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.fixture
def given(program, monkeypatch):
  """The panels that a program draws."""
  panels = []
  monkeypatch.setattr(program("training_curves"), "draw", lambda some, path: panels.extend(some))
  return panels


def test_recipes_are_drawn_with_the_first_one_first(program, given, tmp_path):
  logs = {"back": log((1, 2.0)), "before": log((3, 4.0))}
  for name, metrics in logs.items():
    (tmp_path / f"{name}.json").write_text(json.dumps({"metrics": metrics}))
  program("compared").draw(tmp_path)
  assert [(panel.split, panel.name) for panel in given] == [
    ("train", "loss"),
    ("validation", "perplexity"),
    ("validation", "bleu"),
  ]
  for panel in given:
    assert [*panel.curves.items()] == [("before", [logs["before"]]), ("back", [logs["back"]])]


def test_the_rows_of_table_3_are_drawn_beside_base(program, given, tmp_path):
  names = ["base", "base", "A-h1", "C-N2", "C-d64", "E-learned", "cosine"]
  results = [{"model": name, "metrics": log((number, 1.0))} for number, name in enumerate(names)]
  program("ablations").draw(results, tmp_path / "x.svg")
  assert [[*panel.curves] for panel in given] == [["base", "A-h1"], ["base", "C-N2", "C-d64"], ["base", "E-learned"]]
  assert all(panel.curves["base"] == [results[0]["metrics"], results[1]["metrics"]] for panel in given)
  assert given[1].curves["C-d64"] == [results[4]["metrics"]]
