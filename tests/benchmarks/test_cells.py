"""benchmarks/cells.py: widths against counts by hand, the table, and runs that are not repeated."""

import json
import sys
import xml.etree.ElementTree as ET

import pytest

from tests.marks import long
from tests.paper.documented import DOCS


@pytest.fixture
def cells(program):
  return program("cells")


def by_hand(cell: str, layers: int, width: int, d_model: int, vocabulary: int) -> int:
  """One table, two stacks of layers with their gates' matrices and biases, and the output's matrix."""
  gates = {"rnn": 1, "gru": 3, "lstm": 4}[cell]
  stack = sum(gates * (width * ((d_model if i == 0 else width) + width) + width) for i in range(layers))
  return vocabulary * d_model + 2 * stack + width * d_model


@pytest.mark.parametrize(
  ("cell", "layers"),
  [("gru", 1), *long([("rnn", 4), ("lstm", 2)])],
)
def test_the_width_has_the_nearest_number_of_parameters(cells, cell, layers):
  width, parameters = cells.width(cell, layers, cells.QUICK_PARAMETERS, list(cells.QUICK))
  assert parameters == by_hand(cell, layers, width, 16, 1000)
  off = {near: abs(by_hand(cell, layers, near, 16, 1000) - cells.QUICK_PARAMETERS) for near in range(1, 600)}
  assert off[width] == min(off.values())


@pytest.mark.long
def test_a_number_that_no_width_has_is_refused(cells):
  with pytest.raises(SystemExit, match=r"lstm with 4 layers has 2\d,\d+ parameters at best, not 26,964: choose"):
    cells.width("lstm", 4, 26_964, list(cells.QUICK))


def result(cells, name, seed, perplexity, bleu):
  validations = [{"split": "validation", "step": step, "perplexity": ppl} for step, ppl in ((5, 1.0), (9, perplexity))]
  metrics = [{"split": "train", "step": 9}, *validations]
  test = {"scores": {"bleu": {"score": bleu, "signature": "tok:none"}}, "run": {"step": 9}}
  return {
    "model": name,
    "seed": seed,
    "minutes": 0.5,
    "keys": [*cells.QUICK, "train.steps=9"],
    "parameters": {"total": 200_000},
    "metrics": metrics,
    "test": test,
    "seconds_of_an_update": 1.0,
    "provenance": [],
  }


def test_finished_runs_are_not_repeated_and_a_row_has_both_seeds(cells, tmp_path, monkeypatch, capsys):
  pytest.importorskip("matplotlib", reason="the extra `benchmarks` installs it")
  (tmp_path / "out").mkdir()
  (tmp_path / "out" / "rnn-1-1.json").write_text(json.dumps(result(cells, "rnn-1", 1, 20.0, 10.0)))
  made = []

  def full_run(sweep, name, seed, keys):
    made.append(f"{name}-{seed}")
    return result(cells, name, seed, 30.0 if name == "rnn-1" else 8.0, 14.0)

  monkeypatch.setattr(cells.timed_runs, "full_run", full_run)
  monkeypatch.setattr(cells.timed_runs.rates, "measured", lambda arguments, *rest: dict.fromkeys(arguments, 1.0))
  monkeypatch.setattr(cells, "width", lambda cell, layers, most, keys: (10 * layers, 200_000))
  flags = ["--data=data", f"--runs={tmp_path}", "--quick", "--minutes=0.5", f"--output={tmp_path / 'out'}"]
  monkeypatch.setattr(sys, "argv", ["cells.py", *flags, "--only", "rnn-1", "lstm-4"])
  cells.main()
  assert made == ["lstm-4-1", "rnn-1-2", "lstm-4-2"]
  table = (tmp_path / "out" / "cells.md").read_text()
  rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
  assert rows == [
    ["rnn", "1", "200,000", "9", "20.00, 30.00", "25.00", "10.00, 14.00", "12.00"],
    ["lstm", "4", "200,000", "9", "8.00, 8.00", "8.00", "14.00, 14.00", "14.00"],
  ]
  found = json.loads((tmp_path / "out" / "cells.json").read_text())
  assert [run["perplexity"] for run in found["runs"]] == [8.0, 8.0, 20.0, 30.0]
  ET.parse(tmp_path / "out" / "cells.svg")
  monkeypatch.setattr(cells, "width", lambda cell, layers, most, keys: (10 * layers, 400_000))
  with pytest.raises(SystemExit, match="has results of other --parameters"):
    cells.main()
  assert "rnn-1, seed 1: done before" in capsys.readouterr().err


def test_the_table_is_that_of_the_committed_results(cells):
  folder = DOCS / "results" / "cells"
  lines = (folder / "cells.md").read_text().splitlines()[2:]
  rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
  found = []
  for cell, layers, *_ in rows:
    name = f"{cell}-{layers}"
    results = [json.loads(file.read_text()) for file in sorted(folder.glob(f"{name}-?.json"))]
    found.append([*cells.result_row(name, results).values()])
  assert found == rows and len(rows) == 9
