"""What benchmarks/lineage.py makes of its runs: groups of lengths, rates, and which results belong together."""

import contextlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from transformer_jax.evaluation.scores import score


@pytest.fixture
def lineage(program):
  return program("lineage")


@pytest.fixture
def timed_runs(lineage):
  return sys.modules["timed_runs"]


def test_seeds_take_turns(lineage, timed_runs):
  chosen = ["plain", "luong-dot", "transformer"]
  assert [f"{model}-{seed}" for model, seed in timed_runs.order(lineage.MODELS, chosen)] == [
    "plain-1", "luong-dot-1", "transformer-1", "plain-2", "transformer-2", "plain-3", "transformer-3"
  ]  # fmt: skip


def test_each_sentence_is_in_the_group_of_its_length(timed_runs):
  lengths = [1, 7, 8, 10, 11, 13, 14, 16, 17, 90]
  sources = [" ".join(["a"] * n) for n in lengths]
  references = [f"b c d e f g{n}" for n in lengths]
  hypotheses = [text if n % 2 else "b c d x y z" for n, text in zip(lengths, references, strict=True)]
  groups = timed_runs.by_length([sources, references, hypotheses])
  assert [group["sentences"] for group in groups] == [2] * 5
  assert timed_runs.group_names() == ["up to 7", "8 to 10", "11 to 13", "14 to 16", "from 17"]
  for i, group in enumerate(groups):
    part = slice(2 * i, 2 * i + 2)
    assert group["bleu"] == score(hypotheses[part], references[part], tokenize="none", lowercase=True).bleu


def test_results_of_other_settings_or_rates_are_refused(lineage, timed_runs, tmp_path):
  result = {
    "model": "plain",
    "seed": 1,
    "minutes": 24.0,
    "keys": ["a.b=1", "train.steps=7"],
    "seconds_of_an_update": 0.5,
  }
  (tmp_path / "plain-1.json").write_text(json.dumps(result))

  def finished(minutes, keys, seconds):
    sweep = timed_runs.Sweep(lineage.MODELS, "data", Path("runs"), tmp_path, minutes, keys)
    return timed_runs.finished(sweep, seconds)

  assert finished(24.0, ["a.b=1"], {"plain": 0.5}) == [result]
  for minutes, keys, seconds in ((23.0, ["a.b=1"], 0.5), (24.0, [], 0.5), (24.0, ["a.b=1"], 0.6)):
    with pytest.raises(SystemExit, match="choose another folder"):
      finished(minutes, keys, {"plain": seconds})
  own = timed_runs.model_keys(lineage.MODELS["plain"])
  for keys, refused in ((own, False), ([*own[:-1], "model.hidden_size=7"], True)):
    (tmp_path / "plain-1.json").write_text(json.dumps(result | {"model_keys": keys}))
    with pytest.raises(SystemExit, match="is of a model of") if refused else contextlib.nullcontext():
      finished(24.0, ["a.b=1"], {"plain": 0.5})


def test_a_run_that_makes_as_many_updates_as_another_has_its_own_times(lineage):
  pytest.importorskip("matplotlib")
  metrics = [{"split": "validation", "step": step, "perplexity": 9.0} for step in (30, 60)]
  result = {"model": "sampled", "seed": 1, "metrics": metrics, "operations": 7e12, "seconds_of_an_update": 0.5}
  left, right = lineage.picture_of_training([result], {"plain": 0.5, "sampled": 0.8}).axes
  assert list(left.lines[0].get_xdata()) == [30 * 0.8 / 60, 60 * 0.8 / 60]
  assert list(right.lines[0].get_xdata()) == [210.0, 420.0]


def test_an_update_takes_the_first_ones_time_times_the_median_ratio(lineage, tmp_path):
  """The rounds are those of a machine that was half as quick in the third."""
  rates, file = sys.modules["rates"], tmp_path / "rates.json"
  rounds = {"plain": [1.0, 2.0, 4.0], "transformer": [1.5, 2.0, 8.0]}
  file.write_text(json.dumps({"keys": [], "seconds_of_an_update": rounds}))
  assert rates.measured({"plain": [], "transformer": []}, [], file) == {"plain": 2.0, "transformer": 3.0}
  with pytest.raises(SystemExit, match="choose another folder"):
    rates.measured({"plain": []}, ["a.b=1"], file)


def test_a_model_that_was_not_timed_is_timed_beside_the_first(lineage, tmp_path, monkeypatch):
  """Now the machine is a third as quick; what was timed before keeps its rate."""
  rates, file = sys.modules["rates"], tmp_path / "rates.json"
  before = {"keys": [], "seconds_of_an_update": {"plain": [1.0, 2.0, 4.0], "transformer": [1.5, 2.0, 8.0]}}
  file.write_text(json.dumps(before))
  timed = []

  def measure(configs, folder):
    timed.append(list(configs))
    return {"plain": [6.0, 6.0, 6.0], "rnn": [3.0, 12.0, 3.0]}

  monkeypatch.setattr(rates, "measure", measure)
  monkeypatch.setattr(rates, "config_of", lambda arguments: None)
  expected = {"plain": 2.0, "transformer": 3.0, "rnn": 1.0}
  for _ in range(2):  # the second time nothing is timed
    assert rates.measured({"plain": [], "rnn": [], "transformer": []}, [], file) == expected
  assert timed == [["plain", "rnn"]]
  written = json.loads(file.read_text())
  assert {key: written[key] for key in before} == before and len(written["later"]) == 1


def test_a_run_makes_as_many_updates_as_fit_in_its_minutes(lineage, timed_runs, tmp_path, monkeypatch):
  made = {}

  def full_run(sweep, name, seed, keys):
    made[name] = keys
    return {"model": name, "seed": seed, "minutes": sweep.minutes, "keys": keys}

  monkeypatch.setattr(timed_runs, "full_run", full_run)
  models = {name: lineage.MODELS[name]._replace(seeds=1) for name in ("plain", "transformer")}
  sweep = timed_runs.Sweep(models, "data", tmp_path, tmp_path, 24.0, ["a.b=1"])
  timed_runs.make(sweep, [*models], {"plain": 0.5105, "transformer": 0.75})
  assert made == {"plain": ["a.b=1", "train.steps=2821"], "transformer": ["a.b=1", "train.steps=1920"]}


def test_the_checkpoint_of_the_sweep_translates_the_test_text(lineage, timed_runs, tmp_path, monkeypatch):
  for language, line in (("en", "a b"), ("de", "c d e f")):
    (tmp_path / f"tok_{timed_runs.TEST}.{language}").write_text(f"{line}\n" * 3)
  (tmp_path / "plain-1.de").write_text("c d e f\n" * 3)
  commands = {}

  def command(arguments):
    commands[arguments[0]] = arguments
    return b'{"parameters": {"total": 1}, "flops": {"step": 2}}'

  monkeypatch.setattr(timed_runs.children, "train", lambda arguments: None)
  monkeypatch.setattr(timed_runs.children, "command", command)
  monkeypatch.setattr(timed_runs.runs, "open", lambda run: SimpleNamespace(metrics=[], provenance=[]))
  sweep = timed_runs.Sweep(lineage.MODELS, str(tmp_path), tmp_path / "runs", tmp_path, 24.0, [], step="best")
  found = timed_runs.full_run(sweep, "plain", 1, ["train.steps=7"])
  evaluate = commands["evaluate"]
  given = {flag: evaluate[evaluate.index(flag) + 1] for flag in ("--step", "--source", "--reference", "--tokenize")}
  text = f"{tmp_path}/tok_{timed_runs.TEST}"
  assert given == {"--step": "best", "--source": f"{text}.en", "--reference": f"{text}.de", "--tokenize": "none"}
  assert "--lowercase" in evaluate
  assert found["by_length"][0]["sentences"] == 3 and found["by_length"][0]["bleu"] == pytest.approx(100)
