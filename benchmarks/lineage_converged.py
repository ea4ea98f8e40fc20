"""The models of the lineage, each trained until its validation BLEU has stalled: which is better, given time.

    taskset -c 0 python benchmarks/lineage_converged.py --data DIR --runs DIR [--models NAME ...] [--minutes 361]
      [--output DIR] [--KEY=VALUE ...]

DIR has what benchmarks/multi30k.py asks for. Other flags are keys of every config. A run ends when five evaluations in
a row have no higher BLEU than the best before them, on 500 validation sentences, or after as many updates as fit in
--minutes. The best checkpoint then translates the test set once. The same command resumes after a stop, also in the
middle of a run, and repeats nothing that OUTPUT has.

OUTPUT gets a JSON file and the translations of each run, `table.md` of all finished runs, and `converged.svg`:
validation BLEU over the hours of updates, and over the operations of their matmuls.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import children
import lineage
import programs
import report
import timed_runs

MODELS = {name: lineage.MODELS[name]._replace(seeds=1) for name in ("plain", "bahdanau", "transformer")}
BATCHES = ("train.batch_tokens=4096", "evaluate.every=440", "evaluate.sentences=500")
STOPPING = ("train.patience=5", "train.best_by=bleu", "evaluate.tokenize=none", "evaluate.lowercase=true")


def main() -> None:
  args, keys = parse()
  children.end_children()
  output = Path(args.output)
  keys = [*BATCHES, *STOPPING, *keys]
  sweep = timed_runs.Sweep(MODELS, args.data, Path(args.runs), output, args.minutes, keys, step="best")
  seconds = timed_runs.seconds_of(sweep, args.models)
  results = timed_runs.make(sweep, args.models, seconds)
  report.write_table([row(result) for result in results], output / "table.md")
  picture(results).savefig(output / "converged.svg", metadata={"Date": None})


def parse() -> tuple[argparse.Namespace, list[str]]:
  parser = argparse.ArgumentParser(description="The lineage, given time.", allow_abbrev=False)
  add = parser.add_argument
  add("--data", required=True, metavar="DIR", help="with tok_train, tok_val and tok_test_2016_flickr")
  add("--runs", required=True, metavar="DIR", help="where the run folders are made, or found")
  add("--models", nargs="+", choices=list(MODELS), default=list(MODELS), metavar="NAME", help="(default all)")
  add("--minutes", type=float, default=361.0, metavar="M", help="of updates of a run, at most (default 361)")
  add("--output", default="docs/results/lineage_converged", metavar="DIR", help="for results")
  args, rest = parser.parse_known_args()
  return args, programs.overrides(parser, rest)


def row(result: dict[str, Any]) -> dict[str, Any]:
  """A row of the table: where the run ended, what was best, and BLEU on the test set."""
  updates, bleu = timed_runs.curve(result["metrics"], "bleu")
  seconds, operations = result["seconds_of_an_update"], result["operations"]
  best = updates[bleu.index(max(bleu))]
  return {
    "model": result["model"],
    "parameters": float(result["parameters"]["total"]),
    "updates": str(updates[-1]),
    "best at": str(best),
    "hours to the best": best * seconds / 3600,
    "10^15 operations to the best": best * operations / 1e15,
    "validation BLEU": f"{max(bleu):.2f}",
    "test BLEU": f"{result['test']['scores']['bleu']['score']:.2f}",
  }


def picture(results: Sequence[dict[str, Any]]) -> Any:
  """Validation BLEU of each model, by time and by operations."""
  figure, axes = report.pyplot().subplots(1, 2, figsize=(7, 3.8), sharey=True, layout="constrained")
  for result in results:
    updates, bleu = timed_runs.curve(result["metrics"], "bleu")
    units = (result["seconds_of_an_update"] / 3600, result["operations"] / 1e15)
    for axis, unit in zip(axes, units, strict=True):
      style = {**lineage.LINES[result["model"]], "markevery": 2}
      axis.plot([step * unit for step in updates], bleu, label=result["model"], **style)
  axes[0].set(xlabel="hours of updates", ylabel="validation BLEU")
  axes[1].set(xlabel="10^15 operations of matmuls")
  lineage.finish(figure, axes)
  return figure


if __name__ == "__main__":
  programs.run(main)
