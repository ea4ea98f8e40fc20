"""BLEU on Multi30k, from English: trains, averages, chooses by the validation set, and scores the test set once.

    python benchmarks/multi30k.py --data DIR --runs DIR [--config multi30k] [--target de] [--seeds 1 2 3]
      [--output DIR] [--KEY=VALUE ...]

DIR has tok_train, tok_val and tok_test_2016_flickr, each .en and .de, plain or .xz: the tokenised, lowercased captions.
--target names another target language, `fr` or `cs`, which then is the end of the files' names instead of `de`.
--config=multi30k:plain takes the recipe without R-Drop. Other flags are keys of the config, as in --train.steps=4000.
The same command resumes after a stop.

For each seed, the candidates are the parameters at the end of the training (their moving average, with
--train.ema_decay) and the mean of the last ten checkpoints. The better of the two on the validation set translates the
test set, once. OUTPUT then has the translations (`seed-N.TARGET`), the report of each with its sacreBLEU signatures and
the metrics of its training (`seed-N.json`), and the learning curves (`curve.svg`).
"""

import argparse
import json
import shutil
import statistics
import sys
from pathlib import Path
from typing import Any, NamedTuple

import children
import programs
import report
import training_curves
from training_curves import Panel

from transformer_jax import runs
from transformer_jax.runtime.files import write_atomically

SCORED_AS = ["--tokenize", "none", "--lowercase", "--json"]
LANGUAGES = ("en", "de")


def main() -> None:
  children.end_children()
  args, keys = parse()
  output = Path(args.output)
  output.mkdir(parents=True, exist_ok=True)
  if args.target != LANGUAGES[1]:
    keys = [*keys, f"data.target_language={args.target}"]
  study = Study(args.config, Path(args.runs), args.data, args.target, keys, output)
  results = {seed: full_run(study, seed) for seed in args.seeds}
  curves = {f"seed {seed}": [result["metrics"]] for seed, result in results.items()}
  panels = [Panel(curves, "BLEU of validation sentences", "bleu"), Panel(curves, "validation perplexity", "perplexity")]
  training_curves.draw(panels, output / "curve.svg")
  rows = [row(str(seed), result) for seed, result in results.items()]
  rows.append({"seed": "mean", "test BLEU": statistics.mean(line["test BLEU"] for line in rows)})
  report.finish("multi30k", rows, str(output / "multi30k.json"), config=args.config, keys=keys)


class Study(NamedTuple):
  """The folders and settings of the program.

  Attributes:
    config: as in `train --config`.
    runs: where the run folders are made, or found.
    data: the folder of the text.
    target: the target language.
    keys: keys of every config, as `KEY=VALUE`.
    output: where the results go.
  """

  config: str
  runs: Path
  data: str
  target: str
  keys: list[str]
  output: Path


def parse() -> tuple[argparse.Namespace, list[str]]:
  parser = argparse.ArgumentParser(description="BLEU on Multi30k.", allow_abbrev=False)
  add = parser.add_argument
  add("--data", required=True, metavar="DIR", help="with tok_train, tok_val and tok_test_2016_flickr")
  add("--runs", required=True, metavar="DIR", help="where the run folders are made, or found")
  add("--config", default="multi30k", metavar="NAME", help="of a config file (default multi30k)")
  add("--target", choices=("de", "fr", "cs"), default=LANGUAGES[1], help="the target language (default de)")
  add("--seeds", type=int, nargs="+", default=[1, 2, 3], metavar="N", help="(default 1 2 3)")
  add("--output", default="multi30k", metavar="DIR", help="for translations, reports and the picture")
  args, rest = parser.parse_known_args()
  return args, programs.overrides(parser, rest)


def full_run(study: Study, seed: int) -> dict[str, Any]:
  """One seed, from training to the test set; finished parts are not repeated."""
  done = study.output / f"seed-{seed}.json"
  if done.exists():
    result = json.loads(done.read_text())
    if (result.get("config"), result["keys"]) != (study.config, study.keys):
      sys.exit(f"{done} has another config or other keys: choose another --output")
    return result
  run = study.runs / f"seed-{seed}"
  children.train([f"--config={study.config}", f"--workdir={run}", *flags(study.data, seed, study.keys)])
  last = children.last_checkpoint(run)
  average = run.with_name(f"{run.name}-average-{last}")  # a run that was trained on has another average
  if not (average / "config.json").exists():  # which `average` writes last
    shutil.rmtree(average, ignore_errors=True)  # of one that was killed
    children.command(["average", "--workdir", str(run), "--last", "10", "--output", str(average)])
  candidates = {"end": run, "mean of ten": average}
  validation = {
    name: evaluate(folder, study.data, "val", [], study.target)["bleu"] for name, folder in candidates.items()
  }
  chosen = max(validation, key=lambda name: validation[name])
  report_flags = ["--report", "--hypotheses", str(study.output / f"seed-{seed}.{study.target}")]
  found = evaluate(candidates[chosen], study.data, "test_2016_flickr", report_flags, study.target)
  result = {"validation": validation, "chosen": chosen, "test": found, "config": study.config, "keys": study.keys}
  result["metrics"] = runs.open(run).metrics
  shutil.copy(run / "provenance.json", study.output / f"seed-{seed}.provenance.json")
  write_atomically(done, f"{json.dumps(result, indent=1)}\n".encode())
  return result


def flags(data: str, seed: int, keys: list[str]) -> list[str]:
  """The flags of train.py and `plan`."""
  texts = [f"--config.data.train={data}/tok_train", f"--config.data.validation={data}/tok_val"]
  return [*texts, f"--config.train.seed={seed}", *(f"--config.{key}" for key in keys)]


def evaluate(folder: Path, data: str, name: str, more: list[str], target: str = LANGUAGES[1]) -> dict[str, Any]:
  """The output of `evaluate --json`."""
  source, reference = files(data, name, target)
  texts = ["--source", source, "--reference", reference]
  return json.loads(children.command(["evaluate", "--workdir", str(folder), *texts, *SCORED_AS, *more]))


def files(data: str, name: str, target: str = LANGUAGES[1]) -> list[str]:
  """The source and target files of a test set, plain or compressed."""
  paths = [f"{data}/tok_{name}.{language}" for language in (LANGUAGES[0], target)]
  return [path if Path(path).exists() else f"{path}.xz" for path in paths]


def row(seed: str, result: dict[str, Any]) -> dict[str, Any]:
  """A row of the table."""
  training = [line for line in result["metrics"] if line["split"] == "train"]
  return {
    "seed": seed,
    "test BLEU": result["test"]["scores"]["bleu"]["score"],
    "test chrF2": result["test"]["scores"]["chrf"]["score"],
    "validation BLEU": result["validation"][result["chosen"]],
    "of": result["chosen"],
    "updates": str(training[-1]["step"]),
    "hours of updates": sum(line["seconds"] for line in training) / 3600,
  }


if __name__ == "__main__":
  programs.run(main)
