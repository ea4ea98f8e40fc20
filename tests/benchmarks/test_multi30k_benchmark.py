"""benchmarks/multi30k.py: which commands it runs, with commands that only write their files."""

import json
import sys
from pathlib import Path

import pytest

from transformer_jax.config import Config, serialization


class Commands:
  """Stands for `children.command` and `children.train`: keeps the flags of each, and writes what the next ones need.

  Attributes:
    validation: the BLEU of the validation text, of the run and of the mean of its checkpoints.
    ran: (command, flags) in their order.
  """

  def __init__(self, validation):
    self.validation, self.ran = validation, []

  def __call__(self, arguments):
    name, flags = arguments[0], flags_of(arguments[1:])
    self.ran.append((name, flags))
    return json.dumps(getattr(self, name)(flags)).encode()

  def train(self, arguments):
    flags = flags_of(arguments)
    self.ran.append(("train", flags))
    run = Path(flags["--workdir"])
    (run / "checkpoints" / "70").mkdir(parents=True)
    (run / "checkpoints" / "110").mkdir()
    (run / "config.json").write_text(json.dumps(serialization.to_dict(Config())))
    (run / "metrics.jsonl").write_text(json.dumps({"split": "train", "step": 110, "seconds": 1800}) + "\n")
    (run / "provenance.json").write_text("[]")

  def average(self, flags):
    Path(flags["--output"]).mkdir()

  def evaluate(self, flags):
    name = "mean" if "average" in Path(flags["--workdir"]).name else "end"
    scores = {"bleu": {"score": 41.5}, "chrf": {"score": 65.5}}
    return {"bleu": self.validation[name]} if "_val." in flags["--source"] else {"scores": scores}


def flags_of(arguments):
  """Each flag with its value: `--flag=value`, `--flag value`, or a flag without one."""
  found, name = {}, ""
  for argument in arguments:
    if argument.startswith("--"):
      name, _, value = argument.partition("=")
      found[name] = value
    else:
      found[name] = argument
  return found


@pytest.fixture
def run(program, monkeypatch, tmp_path):
  """Runs the program: (the commands that it ran, its output)."""
  multi30k = program("multi30k")
  monkeypatch.setattr(multi30k.training_curves, "draw", lambda *_: None)

  def run(validation, *flags):
    commands = Commands(validation)
    monkeypatch.setattr(multi30k.children, "train", commands.train)
    monkeypatch.setattr(multi30k.children, "command", commands)
    folders = [f"--{name}={tmp_path / name}" for name in ("data", "runs", "output")]
    monkeypatch.setattr(sys, "argv", ["multi30k.py", *folders, "--seeds", "3", *flags])
    multi30k.main()
    return commands.ran

  return run


@pytest.mark.parametrize(
  ("validation", "best"), [({"end": 40, "mean": 41}, "seed-3-average-110"), ({"end": 41, "mean": 40}, "seed-3")]
)
def test_the_better_candidate_on_the_validation_text_translates_the_test_text_once(run, tmp_path, validation, best):
  ran = run(validation)
  assert [name for name, _ in ran] == ["train", "average", "evaluate", "evaluate", "evaluate"]
  test = [flags for _, flags in ran if "test_2016_flickr" in flags.get("--source", "")]
  assert [Path(flags["--workdir"]).name for flags in test] == [best]
  assert test[0]["--hypotheses"] == str(tmp_path / "output" / "seed-3.de")
  result = json.loads((tmp_path / "output" / "seed-3.json").read_text())
  assert sorted(result["validation"].values()) == [40, 41] and result["validation"][result["chosen"]] == 41


def test_a_finished_seed_is_not_repeated(run):
  run({"end": 1, "mean": 2})
  assert run({"end": 1, "mean": 2}) == []


def test_a_finished_seed_of_another_recipe_is_not_taken_for_this_one(run, tmp_path):
  run({"end": 1, "mean": 2})
  for flag in ("--config=multi30k:plain", "--train.steps=70"):
    with pytest.raises(SystemExit, match=r"seed-3.json has another config or other keys: choose another --output"):
      run({"end": 1, "mean": 2}, flag)
  assert (tmp_path / "output" / "seed-3.json").exists()


def test_the_flags_reach_the_training(run, tmp_path):
  train = dict(run({"end": 1, "mean": 2}, "--config=multi30k:plain", "--train.steps=70"))["train"]
  texts = {"--config.data.train": "tok_train", "--config.data.validation": "tok_val"}
  assert {name: train[name] for name in texts} == {name: f"{tmp_path}/data/{text}" for name, text in texts.items()}
  assert (train["--config"], train["--config.train.steps"], train["--config.train.seed"]) == (
    "multi30k:plain",
    "70",
    "3",
  )
  assert "--config.data.target_language" not in train


def test_another_target_language(run, tmp_path):
  ran = run({"end": 1, "mean": 2}, "--target=cs")
  assert ran[0][1]["--config.data.target_language"] == "cs"
  texts = [(flags["--source"], flags["--reference"]) for name, flags in ran if name == "evaluate"]
  for source, reference in texts:
    assert source.endswith(".en.xz") and reference == source.replace(".en.xz", ".cs.xz")
  assert ran[-1][1]["--hypotheses"] == str(tmp_path / "output" / "seed-3.cs")


def test_the_mean_is_of_ten_checkpoints_and_scores_are_of_tokenised_lowercased_text(run):
  ran = run({"end": 1, "mean": 2})
  assert dict(ran)["average"]["--last"] == "10"
  scored = [flags for name, flags in ran if name == "evaluate"]
  assert len(scored) == 3
  assert all(flags["--tokenize"] == "none" and "--lowercase" in flags for flags in scored)


def test_the_last_row_is_the_mean_of_the_test_text_over_the_seeds(program, monkeypatch, tmp_path):
  multi30k = program("multi30k")
  scores = {1: 40.0, 2: 41.0, 3: 45.0}

  def full_run(study, seed):
    test = {"scores": {"bleu": {"score": scores[seed]}, "chrf": {"score": 60.0}}}
    line = {"split": "train", "step": 7, "seconds": 1800}
    return {"test": test, "validation": {"end": 50.0}, "chosen": "end", "metrics": [line, line]}

  monkeypatch.setattr(multi30k, "full_run", full_run)
  monkeypatch.setattr(multi30k.training_curves, "draw", lambda *_: None)
  monkeypatch.setattr(sys, "argv", ["x", "--data=d", "--runs=r", f"--output={tmp_path}", "--seeds", "1", "2", "3"])
  multi30k.main()
  *rows, mean = json.loads((tmp_path / "multi30k.json").read_text())["rows"]
  assert mean == {"seed": "mean", "test BLEU": 42.0}
  assert [row["hours of updates"] for row in rows] == [1.0] * 3


def test_a_mean_that_was_killed_is_made_again(run, tmp_path):
  (tmp_path / "runs" / "seed-3-average-110" / "checkpoints").mkdir(parents=True)
  assert "average" in [name for name, _ in run({"end": 1, "mean": 2})]
