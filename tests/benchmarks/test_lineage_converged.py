"""benchmarks/lineage_converged.py: its configs stop early by BLEU, and its table against numbers by hand."""

import sys
from types import SimpleNamespace

import pytest

from transformer_jax.config import BestBy, flags


@pytest.fixture
def converged(program):
  pytest.importorskip("matplotlib")
  return program("lineage_converged")


def result(model, bleu):
  validations = [{"split": "validation", "step": 440 * (i + 1), "bleu": value} for i, value in enumerate(bleu)]
  return {
    "model": model,
    "seconds_of_an_update": 1.8,
    "operations": 3e11,
    "parameters": {"total": 2_000},
    "metrics": [{"split": "train", "step": 440}, *validations],
    "test": {"scores": {"bleu": {"score": 31.4}}},
  }


def test_a_row_names_the_best_validation(converged):
  row = converged.row(result("plain", [10.0, 30.0, 29.0, 28.0]))
  assert (row["updates"], row["best at"], row["validation BLEU"]) == ("1760", "880", "30.00")
  assert row["hours to the best"] == pytest.approx(880 * 1.8 / 3600)
  assert row["10^15 operations to the best"] == pytest.approx(0.264)
  assert row["test BLEU"] == "31.40"


def test_the_picture_has_a_line_of_each_model_over_time_and_operations(converged):
  figure = converged.picture([result("plain", [10.0, 30.0]), result("transformer", [20.0, 40.0])])
  time, operations = figure.axes
  assert [list(line.get_ydata()) for line in time.lines] == [[10.0, 30.0], [20.0, 40.0]]
  assert list(time.lines[0].get_xdata()) == pytest.approx([0.22, 0.44])
  assert list(operations.lines[1].get_xdata()) == pytest.approx([0.132, 0.264])


def test_every_config_stops_by_the_bleu_of_the_validation_text(converged):
  timed_runs = converged.timed_runs
  for model in converged.MODELS.values():
    config, *arguments = timed_runs.flags(model, 1, "DIR", [*converged.BATCHES, *converged.STOPPING])
    made = flags.read_config(config.partition("=")[2], flags.read_keys(arguments))
    assert (made.train.patience, made.train.best_by) == (5, BestBy.BLEU)
    assert (made.evaluate.every, made.evaluate.sentences, made.train.batch_tokens) == (440, 500, 4096)
    assert made.decode.beam_size == 5  # of the validations, too


def test_the_best_checkpoints_translate(converged, tmp_path, monkeypatch):
  sweeps = []
  monkeypatch.setattr(converged.children, "end_children", lambda: None)
  monkeypatch.setattr(converged.timed_runs, "seconds_of", lambda *_: {})
  monkeypatch.setattr(converged.timed_runs, "make", lambda sweep, *_: sweeps.append(sweep) or [])
  monkeypatch.setattr(converged.report, "write_table", lambda *_: None)
  monkeypatch.setattr(converged, "picture", lambda _: SimpleNamespace(savefig=lambda *_, **__: None))
  monkeypatch.setattr(sys, "argv", ["x", "--data=d", f"--runs={tmp_path}", f"--output={tmp_path}", "--train.seed=3"])
  converged.main()
  [sweep] = sweeps
  assert sweep.step == "best" and sweep.keys == [*converged.BATCHES, *converged.STOPPING, "train.seed=3"]
