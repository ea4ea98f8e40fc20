"""The Transformer beside its recurrent ancestors on Multi30k: the same text, sizes, search and time of training.

    python benchmarks/lineage.py --data DIR --runs DIR [--minutes 24] [--models NAME ...] [--output DIR] [--KEY=VALUE]

DIR has what benchmarks/multi30k.py asks for. Other flags are keys of every config, as in --train.batch_tokens=2048.

If OUTPUT has no rates.json yet, all models are first timed in turns (`rates.py`); the machine must do nothing else.
Each run then makes as many updates as fit in --minutes at its rate, so their number does not depend on later load. Then
the run translates the test set once, with the moving average of its parameters. The same command resumes after a stop,
also in the middle of a run, and repeats no run. If OUTPUT is of another machine, choose another folder. Once rates.json
exists, several programs with different --models can run side by side. OUTPUT gets a JSON file for each run and its
translations; from all of them the program makes `table.md`, `bleu_by_length.svg` and `curve.svg`.
"""

import argparse
import itertools
import json
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import multi30k
import rates
import report
from etils import epath

from transformer_jax.data.text import lines_of
from transformer_jax.evaluation.scores import score

# The number of seeds of each model, and its config.
MODELS = {
  "plain": (3, "rnn.py:plain"),
  "reversed": (1, "rnn.py:reversed"),
  "bahdanau": (3, "rnn.py:bahdanau"),
  "luong-dot": (1, "rnn.py:luong-dot"),
  "luong-general": (3, "rnn.py:luong-general"),
  "luong-concat": (1, "rnn.py:luong-concat"),
  "transformer": (3, "multi30k.py"),
}
# Groups of source lengths in words; the last number of a group is below the first of the next.
LENGTHS = (0, 8, 11, 14, 17, 1000)
TEST = "test_2016_flickr"
# Batches are small, as there is time for few large ones.
SHORT = ["train.batch_tokens=2048", "evaluate.every=250", "evaluate.sentences=0"]


def main() -> None:
  args, keys = parse()
  for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, frame: sys.exit(128 + number))  # so that its child processes end, too
  output = Path(args.output)
  output.mkdir(parents=True, exist_ok=True)
  finished(output, args.minutes, keys)
  seconds = rates.measured({model: flags(model, 1, args.data, keys) for model in MODELS}, keys, output / "rates.json")
  seconds["reversed"] = seconds["plain"]  # the same operations in another order
  for result in finished(output, args.minutes, keys, seconds):
    report.progress(f"{result['model']}, seed {result['seed']}: done before, as {output} has it")
  for model, seed in runs(args.models):
    done = output / f"{model}-{seed}.json"
    if not done.exists():
      report.progress(f"{model}, seed {seed}")
      steps = round(60 * args.minutes / seconds[model])
      result = whole(model, seed, args, [*keys, f"train.steps={steps}"])
      whole_file = done.with_suffix(".tmp")
      whole_file.write_text(json.dumps({**result, "seconds_of_an_update": seconds[model]}, indent=1) + "\n")
      whole_file.replace(done)
  results = finished(output, args.minutes, keys, seconds)
  rows = [row(model, [r for r in results if r["model"] == model]) for model in MODELS]
  table = report.table([row for row in rows if row])
  (output / "table.md").write_text(table + "\n")
  print(table)
  draw(results, output)


def parse() -> tuple[argparse.Namespace, list[str]]:
  parser = argparse.ArgumentParser(description="The Transformer beside its recurrent ancestors.", allow_abbrev=False)
  add = parser.add_argument
  add("--data", required=True, metavar="DIR", help="with tok_train, tok_val and tok_test_2016_flickr")
  add("--runs", required=True, metavar="DIR", help="where the run folders are made, or found")
  add("--minutes", type=float, default=24.0, metavar="M", help="of updates in each run (default 24)")
  add("--models", nargs="+", choices=list(MODELS), default=list(MODELS), metavar="NAME", help="(default all)")
  add("--output", default="docs/results/lineage", metavar="DIR", help="for results (default docs/results/lineage)")
  args, rest = parser.parse_known_args()
  return args, multi30k.overrides(parser, rest)


def runs(models: Sequence[str]) -> Iterator[tuple[str, int]]:
  """The first seed of each model, then the second seeds, so that the first results can be compared early."""
  for seed in range(1, 1 + max(seeds for seeds, _ in MODELS.values())):
    yield from ((model, seed) for model in models if seed <= MODELS[model][0])


def finished(
  output: Path, minutes: float, keys: list[str], seconds: Mapping[str, float] | None = None
) -> list[dict[str, Any]]:
  """The existing results; ends the program if one has other settings, or other rates than `seconds`."""
  results = {path: json.loads(path.read_text()) for path in sorted(output.glob("*-[0-9].json"))}
  for path, result in results.items():
    if (result["minutes"], result["keys"][:-1]) != (minutes, keys):
      sys.exit(f"{path} is of {result['minutes']:g} minutes and {result['keys']}: choose another --output")
    if seconds and result["seconds_of_an_update"] != seconds[result["model"]]:
      sys.exit(f"{path} is of other rates than those of {output / 'rates.json'}: choose another --output")
  return list(results.values())


def flags(model: str, seed: int, data: str, keys: list[str]) -> list[str]:
  """The flags of train.py and `plan`."""
  config = multi30k.ROOT / "configs" / MODELS[model][1]
  return [f"--config={config}", *multi30k.flags(data, seed, [*SHORT, *keys])]


def whole(model: str, seed: int, args: argparse.Namespace, keys: list[str]) -> dict[str, Any]:
  """One run, from its first update to its scores on the test set."""
  run = Path(args.runs) / f"{model}-{seed}"
  arguments = flags(model, seed, args.data, keys)
  train([f"--workdir={run}", *arguments])
  hypotheses = Path(args.output) / f"{model}-{seed}.de"
  found = multi30k.evaluate(run, args.data, TEST, ["--report", "--hypotheses", str(hypotheses)])
  plan = json.loads(multi30k.command("plan", "--no-data", "--json", *arguments))
  return {
    "model": model,
    "seed": seed,
    "minutes": args.minutes,
    "keys": keys,
    "parameters": plan["parameters"],
    "operations": plan["flops"]["step"],
    "test": found,
    "by_length": by_length(
      [list(lines_of(epath.Path(file))) for file in (*multi30k.files(args.data, TEST), hypotheses)]
    ),
    "metrics": [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()],
    "provenance": json.loads((run / "provenance.json").read_text()),
  }


def train(arguments: list[str]) -> None:
  program = [sys.executable, str(multi30k.ROOT / "train.py"), *arguments]
  with subprocess.Popen(program, start_new_session=True) as process:  # a Ctrl-C does not reach a new session
    try:
      status = process.wait()
    except BaseException:
      process.terminate()  # the process saves its state, and this program waits for it
      raise
  if status:
    raise SystemExit(f"train.py ended with status {status}")


def by_length(texts: list[list[str]]) -> list[dict[str, Any]]:
  """BLEU for each group of source lengths, from sources, references and translations."""
  sources, references, hypotheses = texts
  groups = []
  for least, above in itertools.pairwise(LENGTHS):
    chosen = [i for i, source in enumerate(sources) if least <= len(source.split()) < above]
    parts = ([side[i] for i in chosen] for side in (hypotheses, references))
    bleu = score(*parts, tokenize="none", lowercase=True).to_dict()["bleu"]
    groups.append({"least": least, "above": above, "sentences": len(chosen), "bleu": bleu})
  return groups


def row(model: str, results: list[dict[str, Any]]) -> dict[str, Any]:
  """A row of the table: means over the finished seeds, and BLEU's spread; empty cells if there are none."""
  if not results:
    return {}

  def mean(*values: float) -> float:
    return statistics.mean(values)

  bleu = [result["test"]["scores"]["bleu"]["score"] for result in results]
  training = [[line for line in result["metrics"] if line["split"] == "train"] for result in results]
  tokens = [sum(line["target_tokens"] for line in run) / run[-1]["step"] for run in training]  # of an update
  return {
    "model": model,
    "seeds": str(len(results)),
    "parameters": float(results[0]["parameters"]["total"]),
    "target tokens/s": mean(*tokens) / results[0]["seconds_of_an_update"],
    "updates": mean(*(float(result["test"]["run"]["step"]) for result in results)),
    "BLEU": f"{mean(*bleu):.2f}",
    "of each seed": ", ".join(f"{value:.2f}" for value in bleu),
    **{
      f"{name} words": f"{mean(*(result['by_length'][i]['bleu'] for result in results)):.1f}"
      for i, name in enumerate(group_names())
    },
  }


def group_names() -> list[str]:
  pairs = list(itertools.pairwise(LENGTHS))
  middle = [f"{least} to {above - 1}" for least, above in pairs[1:-1]]
  return [f"up to {pairs[0][1] - 1}", *middle, f"from {pairs[-1][0]}"]


def draw(results: list[dict[str, Any]], output: Path) -> None:
  """Draws BLEU over the source length, and perplexity over the minutes and over the matmul operations of training."""
  plt = multi30k.pyplot()
  figure, axis = plt.subplots(figsize=(7.5, 3.4), layout="constrained")
  for model in MODELS:
    found = [[group["bleu"] for group in result["by_length"]] for result in results if result["model"] == model]
    if found:
      axis.plot(group_names(), [statistics.mean(values) for values in zip(*found, strict=True)], "o-", label=model)
  axis.set(xlabel="words of the source", ylabel="BLEU")
  finish(figure, [axis], output / "bleu_by_length.svg")
  figure, axes = plt.subplots(1, 2, figsize=(10.5, 3.4), sharey=True, layout="constrained")
  for result in sorted(results, key=lambda result: list(MODELS).index(result["model"])):
    if result["seed"] == 1:
      steps, perplexities = curve(result["metrics"])
      units = (result["seconds_of_an_update"] / 60, result["operations"] / 1e12)
      for axis, unit in zip(axes, units, strict=True):
        axis.plot([step * unit for step in steps], perplexities, label=result["model"])
  axes[0].set(xlabel="minutes of updates", ylabel="validation perplexity", yscale="log")
  axes[1].set(xlabel="10^12 operations of matmuls")
  finish(figure, axes, output / "curve.svg")


def curve(metrics: list[dict[str, Any]]) -> tuple[list[int], list[float]]:
  """The steps and perplexities of all validations."""
  found = [line for line in metrics if line["split"] == "validation"]
  return [line["step"] for line in found], [line["perplexity"] for line in found]


def finish(figure: Any, axes: Sequence[Any], path: Path) -> None:
  for axis in axes:
    axis.grid(alpha=0.3)
  figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper")
  figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
  main()
