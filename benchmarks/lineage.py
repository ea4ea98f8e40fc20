"""The Transformer beside its recurrent ancestors on Multi30k: the same text, sizes, search and time of training.

    python benchmarks/lineage.py --data DIR --runs DIR [--minutes 24] [--models NAME ...] [--output DIR] [--KEY=VALUE]

DIR has what benchmarks/multi30k.py asks for. Other flags are keys of every config, as in --train.batch_tokens=2048.

The models that OUTPUT/rates.json does not have yet are first timed in turns (`rates.py`); the machine must do nothing
else. Each run then makes as many updates as fit in --minutes at its rate; `reversed` and `sampled` make as many as
`plain`. Then the run translates the test set once, with the moving average of its parameters. The same command resumes
after a stop, also in the middle of a run, and repeats no run. If OUTPUT is of another machine, choose another folder.
Once rates.json has all models, several programs with different --models can run side by side. OUTPUT gets a JSON file
for each run and its translations; from all of them the program makes `table.md`, `bleu_by_length.svg` and `curve.svg`.
The first picture also has the line of `ibm_model_1.json`, if OUTPUT has this file of `ibm_model_1.py`.
"""

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import children
import programs
import report
import timed_runs
from line_styles import STYLES
from timed_runs import Model

MODELS = {
  "plain": Model(3, "rnn.py:plain"),
  "reversed": Model(1, "rnn.py:reversed"),
  "sampled": Model(1, "rnn.py:plain", ("train.scheduled_sampling=inverse-sigmoid", "train.sampling_k=250")),
  "bahdanau": Model(3, "rnn.py:bahdanau"),
  "luong-dot": Model(1, "rnn.py:luong-dot"),
  "luong-general": Model(3, "rnn.py:luong-general"),
  "luong-concat": Model(1, "rnn.py:luong-concat"),
  "rnn": Model(1, "rnn.py:rnn"),
  "gru": Model(1, "rnn.py:gru"),
  "transformer": Model(3, "multi30k.py:plain"),
}
IBM_MODEL_1 = "ibm_model_1"
NAMES = {IBM_MODEL_1: "IBM model 1"}
LINES = dict(zip((*MODELS, IBM_MODEL_1), STYLES, strict=False))  # the style of each model in the pictures


def main() -> None:
  args, keys = parse()
  children.end_children()
  output = Path(args.output)
  sweep = timed_runs.Sweep(MODELS, args.data, Path(args.runs), output, args.minutes, keys)
  times = timed_runs.seconds_of(sweep, args.models)
  times["reversed"] = times["plain"]  # the same operations in another order
  seconds = {**times, "sampled": times["plain"]}  # equal updates, as sampling changes what an update learns
  results = timed_runs.make(sweep, args.models, seconds)
  by_model = {model: [result for result in results if result["model"] == model] for model in MODELS}
  rows = [row(model, found, times[model]) for model, found in by_model.items() if found]
  report.write_table(rows, output / "table.md")
  draw(results, times, output)


def parse() -> tuple[argparse.Namespace, list[str]]:
  parser = argparse.ArgumentParser(description="The Transformer beside its recurrent ancestors.", allow_abbrev=False)
  add = parser.add_argument
  add("--data", required=True, metavar="DIR", help="with tok_train, tok_val and tok_test_2016_flickr")
  add("--runs", required=True, metavar="DIR", help="where the run folders are made, or found")
  add("--minutes", type=float, default=24.0, metavar="M", help="of updates in each run (default 24)")
  add("--models", nargs="+", choices=list(MODELS), default=list(MODELS), metavar="NAME", help="(default all)")
  add("--output", default="docs/results/lineage", metavar="DIR", help="for results (default docs/results/lineage)")
  args, rest = parser.parse_known_args()
  return args, programs.overrides(parser, rest)


def row(model: str, results: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
  """A row of the table: means over the finished seeds, and the BLEU of each.

  Args:
    model: its name.
    results: the results of its seeds.
    seconds: the time of an update.
  """
  bleu = [result["test"]["scores"]["bleu"]["score"] for result in results]
  training = [[line for line in result["metrics"] if line["split"] == "train"] for result in results]
  tokens = [sum(line["target_tokens"] for line in run) / run[-1]["step"] for run in training]  # of an update
  return {
    "model": model,
    "seeds": str(len(results)),
    "parameters": float(results[0]["parameters"]["total"]),
    "target tokens/s": statistics.mean(tokens) / seconds,
    "updates": statistics.mean(float(result["test"]["run"]["step"]) for result in results),
    "BLEU": f"{statistics.mean(bleu):.2f}",
    "of each seed": ", ".join(f"{value:.2f}" for value in bleu),
    **{
      f"{name} words": f"{statistics.mean(result['by_length'][i]['bleu'] for result in results):.1f}"
      for i, name in enumerate(timed_runs.group_names())
    },
  }


def draw(results: list[dict[str, Any]], times: Mapping[str, float], output: Path) -> None:
  """Draws BLEU over the source length, and perplexity over the minutes and over the matmul operations of training."""
  statistical = output / f"{IBM_MODEL_1}.json"  # of benchmarks/ibm_model_1.py
  before = [json.loads(statistical.read_text())] if statistical.exists() else []
  metadata = {"Date": None}
  picture_by_length([*before, *results]).savefig(output / "bleu_by_length.svg", metadata=metadata)
  picture_of_training(results, times).savefig(output / "curve.svg", metadata=metadata)


def picture_by_length(results: list[dict[str, Any]]) -> Any:
  """BLEU of each model for each group of source lengths, as the mean over its seeds."""
  figure, axis = report.pyplot().subplots(figsize=(7, 3.8), layout="constrained")
  for model, style in LINES.items():
    found = [[group["bleu"] for group in result["by_length"]] for result in results if result["model"] == model]
    if found:
      means = [statistics.mean(values) for values in zip(*found, strict=True)]
      axis.plot(timed_runs.group_names(), means, label=NAMES.get(model, model), **{**style, "markevery": 1})
  axis.set(xlabel="words of the source", ylabel="BLEU")
  finish(figure, [axis])
  return figure


def picture_of_training(results: list[dict[str, Any]], times: Mapping[str, float]) -> Any:
  """The perplexity of each model's first seed, by time and by operations; `times` has the seconds of an update."""
  figure, axes = report.pyplot().subplots(1, 2, figsize=(7, 3.8), sharey=True, layout="constrained")
  for result in sorted(results, key=lambda result: list(MODELS).index(result["model"])):
    if result["seed"] == 1:
      steps, perplexities = timed_runs.curve(result["metrics"])
      units = (times[result["model"]] / 60, result["operations"] / 1e12)
      for axis, unit in zip(axes, units, strict=True):
        style = {**LINES[result["model"]], "markevery": 2}
        axis.plot([step * unit for step in steps], perplexities, label=result["model"], **style)
  axes[0].set(xlabel="minutes of updates", ylabel="validation perplexity", yscale="log")
  axes[1].set(xlabel="10^12 operations of matmuls")
  finish(figure, axes)
  return figure


def finish(figure: Any, axes: Sequence[Any]) -> None:
  for axis in axes:
    axis.grid(alpha=0.3)
  handles, labels = axes[0].get_legend_handles_labels()
  figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize="small")


if __name__ == "__main__":
  programs.run(main)
