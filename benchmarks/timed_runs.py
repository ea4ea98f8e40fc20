"""Runs of several models on Multi30k that get equal time: each is trained, translates the test set once and is scored.

`lineage.py`, `lineage_converged.py`, `cells.py` and `ablations.py` say which models. `rates.py` measures the time of an
update of each. A run then makes as many updates as fit in its minutes at this rate, so their number does not depend on
later load. A run that was stopped goes on, also in the middle, and a finished one is not repeated: OUTPUT has its
results in `NAME-SEED.json`.
"""

import itertools
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import children
import multi30k
import rates
import report
import text

from transformer_jax import runs
from transformer_jax.evaluation.scores import score
from transformer_jax.runtime.files import write_atomically

# Groups of source lengths in words; the last number of a group is below the first of the next.
LENGTHS = (0, 8, 11, 14, 17, 1000)
TEST = "test_2016_flickr"
# Batches are small, as there is time for few large ones.
SHORT = ["train.batch_tokens=2048", "evaluate.every=250", "evaluate.sentences=0"]


class Model(NamedTuple):
  """A model to train.

  Attributes:
    seeds: the number of its runs.
    config: its file in `configs/`, with the argument.
    keys: keys of the config that are this model's own, as `KEY=VALUE`.
  """

  seeds: int
  config: str
  keys: tuple[str, ...] = ()


class Sweep(NamedTuple):
  """All runs of a program.

  Attributes:
    models: name -> model; the times of the others are relative to the first one's.
    data: the folder of the text.
    runs: where the run folders are made, or found.
    output: where the results of each run go.
    minutes: the time of the updates of each run.
    keys: keys of every config, as `KEY=VALUE`.
    step: the checkpoint that translates the test set, as in `evaluate --step`.
  """

  models: Mapping[str, Model]
  data: str
  runs: Path
  output: Path
  minutes: float
  keys: list[str]
  step: str = "last"


def seconds_of(sweep: Sweep, chosen: Sequence[str]) -> dict[str, float]:
  """The seconds of an update of each model that has been timed, after timing the chosen ones that have not."""
  sweep.output.mkdir(parents=True, exist_ok=True)
  finished(sweep)  # refuses other settings before it takes any time
  first = next(iter(sweep.models))
  arguments = {name: flags(sweep.models[name], 1, sweep.data, sweep.keys) for name in dict.fromkeys([first, *chosen])}
  return rates.measured(arguments, sweep.keys, sweep.output / "rates.json")


def make(sweep: Sweep, chosen: Sequence[str], seconds: Mapping[str, float]) -> list[dict[str, Any]]:
  """Makes the runs of the chosen models that are not finished, and returns the results of all finished runs."""
  for result in finished(sweep, seconds):
    report.progress(f"{result['model']}, seed {result['seed']}: done before, as {sweep.output} has it")
  for name, seed in order(sweep.models, chosen):
    done = sweep.output / f"{name}-{seed}.json"
    if not done.exists():
      report.progress(f"{name}, seed {seed}")
      steps = max(1, round(60 * sweep.minutes / seconds[name]))
      result = full_run(sweep, name, seed, [*sweep.keys, f"train.steps={steps}"])
      result["seconds_of_an_update"] = seconds[name]
      write_atomically(done, f"{json.dumps(result, indent=1)}\n".encode())
  return finished(sweep, seconds)


def order(models: Mapping[str, Model], chosen: Sequence[str]) -> Iterator[tuple[str, int]]:
  """The first seed of each model, then the second seeds, so that the first results can be compared early."""
  for seed in range(1, 1 + max(model.seeds for model in models.values())):
    yield from ((name, seed) for name in chosen if seed <= models[name].seeds)


def finished(sweep: Sweep, seconds: Mapping[str, float] | None = None) -> list[dict[str, Any]]:
  """The existing results; ends the program if one has other settings, or other rates than `seconds`."""
  output = sweep.output
  paths = [path for path in sorted(output.glob("*.json")) if re.fullmatch(r".+-\d+", path.stem)]
  results = {path: json.loads(path.read_text()) for path in paths}
  for path, result in results.items():
    if (result["minutes"], result["keys"][:-1]) != (sweep.minutes, sweep.keys):
      sys.exit(f"{path} is of {result['minutes']:g} minutes and {result['keys']}: choose another folder")
    own = model_keys(sweep.models[result["model"]])
    if result.get("model_keys", own) != own:  # older results do not tell them
      sys.exit(f"{path} is of a model of {result['model_keys']}: choose another folder")
    if seconds and result["seconds_of_an_update"] != seconds[result["model"]]:
      sys.exit(f"{path} is of other rates than those of {output / 'rates.json'}: choose another folder")
  return list(results.values())


def model_keys(model: Model) -> list[str]:
  """What makes a model, as a result has it."""
  return [model.config, *model.keys]


def flags(model: Model, seed: int, data: str, keys: list[str]) -> list[str]:
  """The flags of train.py and `plan`."""
  config = children.ROOT / "configs" / model.config
  return [f"--config={config}", *multi30k.flags(data, seed, [*SHORT, *model.keys, *keys])]


def full_run(sweep: Sweep, name: str, seed: int, keys: list[str]) -> dict[str, Any]:
  """One run, from its first update to its scores on the test set."""
  run = sweep.runs / f"{name}-{seed}"
  arguments = flags(sweep.models[name], seed, sweep.data, keys)
  children.train([f"--workdir={run}", *arguments])
  hypotheses = sweep.output / f"{name}-{seed}.de"
  report_flags = ["--report", "--hypotheses", str(hypotheses), "--step", sweep.step]
  found = multi30k.evaluate(run, sweep.data, TEST, report_flags)
  plan = json.loads(children.command(["plan", "--no-data", "--json", *arguments]))
  return {
    "model": name,
    "model_keys": model_keys(sweep.models[name]),
    "seed": seed,
    "minutes": sweep.minutes,
    "keys": keys,
    "parameters": plan["parameters"],
    "operations": plan["flops"]["step"],
    "test": found,
    "by_length": by_length([text.lines(file) for file in (*multi30k.files(sweep.data, TEST), hypotheses)]),
    "metrics": runs.open(run).metrics,
    "provenance": runs.open(run).provenance,
  }


def by_length(texts: list[list[str]]) -> list[dict[str, Any]]:
  """BLEU for each group of source lengths, from sources, references and translations; None where no sentence is."""
  sources, references, hypotheses = texts
  groups = []
  for least, above in itertools.pairwise(LENGTHS):
    chosen = [i for i, source in enumerate(sources) if least <= len(source.split()) < above]
    parts = ([side[i] for i in chosen] for side in (hypotheses, references))
    bleu = score(*parts, tokenize="none", lowercase=True).to_dict()["bleu"] if chosen else None
    groups.append({"least": least, "above": above, "sentences": len(chosen), "bleu": bleu})
  return groups


def group_names() -> list[str]:
  pairs = list(itertools.pairwise(LENGTHS))
  middle = [f"{least} to {above - 1}" for least, above in pairs[1:-1]]
  return [f"up to {pairs[0][1] - 1}", *middle, f"from {pairs[-1][0]}"]


def curve(metrics: list[dict[str, Any]], name: str = "perplexity") -> tuple[list[int], list[float]]:
  """The steps of all validations, and what they found: the perplexities, or another metric."""
  found = [line for line in metrics if line["split"] == "validation"]
  return [line["step"] for line in found], [line[name] for line in found]
