"""The Transformer beside its recurrent ancestors on Multi30k: the same text, sizes, search and time of training.

    python benchmarks/lineage.py --data DIR --runs DIR [--minutes 15] [--models NAME ...] [--output DIR] [--KEY=VALUE]

DIR has what benchmarks/multi30k.py asks for. Other flags are keys of every config, as in --train.batch_tokens=2048.

Each run trains until its updates have taken --minutes and then translates the test set once, with the moving average
of its parameters. The same command goes on where it was stopped, also in the middle of a run, and does no run twice.
OUTPUT has a JSON file for each run and its translations; from all that are there the program makes `table.md`,
`bleu_by_length.svg` and `curve.svg`.
"""

import argparse
import itertools
import json
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import multi30k
import report
from etils import epath

from transformer_jax.data.text import lines_of
from transformer_jax.evaluation.scores import score

# How many seeds each has, and its config.
MODELS = {
  "plain": (3, "rnn.py:plain"),
  "reversed": (1, "rnn.py:reversed"),
  "bahdanau": (3, "rnn.py:bahdanau"),
  "luong-dot": (1, "rnn.py:luong-dot"),
  "luong-general": (3, "rnn.py:luong-general"),
  "luong-concat": (1, "rnn.py:luong-concat"),
  "transformer": (3, "multi30k.py"),
}
# Words of the source; the last number of one group is below the first of the next.
LENGTHS = (0, 8, 11, 14, 17, 1000)
TEST = "test_2016_flickr"
# The clock ends a run; batches are small, as it has time for few.
SHORT = ["train.steps=10000000", "train.batch_tokens=2048", "evaluate.every=250", "evaluate.sentences=0"]


def main() -> None:
  args, keys = parse()
  signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that what it started ends, too
  output = Path(args.output)
  output.mkdir(parents=True, exist_ok=True)
  for model, seed in runs(args.models):
    done = output / f"{model}-{seed}.json"
    if not done.exists():
      report.progress(f"{model}, seed {seed}")
      result = whole(model, seed, Path(args.runs), args, keys)
      done.write_text(json.dumps(result, indent=1) + "\n")
  results = [json.loads(path.read_text()) for path in sorted(output.glob("*-[0-9].json"))]
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
  add("--minutes", type=float, default=15.0, metavar="M", help="of updates in each run (default 15)")
  add("--models", nargs="+", choices=list(MODELS), default=list(MODELS), metavar="NAME", help="(default all)")
  add("--output", default="docs/results/lineage", metavar="DIR", help="for results (default docs/results/lineage)")
  args, rest = parser.parse_known_args()
  return args, multi30k.overrides(parser, rest)


def runs(models: Sequence[str]) -> Iterator[tuple[str, int]]:
  """The first seed of each model, then the second of those that have one: what is there early can be compared."""
  for seed in range(1, 1 + max(seeds for seeds, _ in MODELS.values())):
    yield from ((model, seed) for model in models if seed <= MODELS[model][0])


def whole(model: str, seed: int, folder: Path, args: argparse.Namespace, keys: list[str]) -> dict[str, Any]:
  """One run, from its first update to the scores of the test set."""
  run, config = folder / f"{model}-{seed}", str(multi30k.ROOT / "configs" / MODELS[model][1])
  flags = multi30k.flags(args.data, seed, [*SHORT, *keys])
  train([f"--config={config}", f"--workdir={run}", *flags], run / "metrics.jsonl", 60 * args.minutes)
  hypotheses = Path(args.output) / f"{model}-{seed}.de"
  found = multi30k.evaluate(run, args.data, TEST, ["--report", "--hypotheses", str(hypotheses)])
  metrics = lines(run / "metrics.jsonl")
  plan = json.loads(multi30k.command("plan", f"--config={config}", "--no-data", "--json", *flags))
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
    "metrics": metrics,
    "provenance": json.loads((run / "provenance.json").read_text()),
  }


def train(arguments: list[str], metrics: Path, seconds: float) -> None:
  """Trains until the updates have taken so long; their times are in the log, and so is what an earlier part took."""
  if spent(metrics) >= seconds:
    return
  process = subprocess.Popen([sys.executable, str(multi30k.ROOT / "train.py"), *arguments])
  try:
    while process.poll() is None and spent(metrics) < seconds:
      time.sleep(0.5)
    process.terminate()  # it saves its state
    status = process.wait()
  except BaseException:
    process.terminate()
    process.wait()
    raise
  if status != 128 + signal.SIGTERM:
    raise SystemExit(f"train.py ended with status {status}")


def spent(metrics: Path) -> float:
  """Seconds of updates so far."""
  return sum(line["seconds"] for line in lines(metrics) if line["split"] == "train")


def lines(metrics: Path) -> list[dict[str, Any]]:
  """What is in the log; the last line may be half written."""
  return [json.loads(line) for line in metrics.read_text().split("\n")[:-1]] if metrics.exists() else []


def by_length(texts: list[list[str]]) -> list[dict[str, Any]]:
  """BLEU of the sentences of each group of lengths, from sources, references and translations."""
  sources, references, hypotheses = texts
  groups = []
  for least, above in itertools.pairwise(LENGTHS):
    chosen = [i for i, source in enumerate(sources) if least <= len(source.split()) < above]
    parts = ([side[i] for i in chosen] for side in (hypotheses, references))
    bleu = score(*parts, tokenize="none", lowercase=True).to_dict()["bleu"]
    groups.append({"least": least, "above": above, "sentences": len(chosen), "bleu": bleu})
  return groups


def row(model: str, results: list[dict[str, Any]]) -> dict[str, Any]:
  """A row of the table: means over the seeds that are there, and BLEU's spread; empty where there are none."""
  if not results:
    return {}

  def mean(*values: float) -> float:
    return statistics.mean(values)

  bleu = [result["test"]["scores"]["bleu"]["score"] for result in results]
  training = [[line for line in result["metrics"] if line["split"] == "train"] for result in results]
  tokens = [sum(line["target_tokens"] for line in run) for run in training]
  speed = [count / sum(line["seconds"] for line in run) for count, run in zip(tokens, training, strict=True)]
  return {
    "model": model,
    "seeds": str(len(results)),
    "parameters": float(results[0]["parameters"]["total"]),
    "target tokens/s": mean(*speed),
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
  """BLEU by length of the source, and perplexity by minutes of training."""
  plt = multi30k.pyplot()
  figure, axis = plt.subplots(figsize=(6, 3.4), layout="constrained")
  for model in MODELS:
    found = [[group["bleu"] for group in result["by_length"]] for result in results if result["model"] == model]
    if found:
      axis.plot(group_names(), [statistics.mean(values) for values in zip(*found, strict=True)], "o-", label=model)
  axis.set(xlabel="words of the source", ylabel="BLEU")
  finish(figure, axis, output / "bleu_by_length.svg")
  figure, axis = plt.subplots(figsize=(6, 3.4), layout="constrained")
  for result in results:
    if result["seed"] == 1:
      axis.plot(*curve(result["metrics"]), label=result["model"])
  axis.set(xlabel="minutes of updates", ylabel="validation perplexity", yscale="log")
  finish(figure, axis, output / "curve.svg")


def curve(metrics: list[dict[str, Any]]) -> tuple[list[float], list[float]]:
  """Minutes and perplexities of each validation."""
  minutes, perplexities, now = [], [], 0.0
  for line in metrics:
    if line["split"] == "train":
      now += line["seconds"] / 60
    else:
      minutes.append(now)
      perplexities.append(line["perplexity"])
  return minutes, perplexities


def finish(figure: Any, axis: Any, path: Path) -> None:
  axis.grid(alpha=0.3)
  if axis.lines:
    axis.legend()
  figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
  main()
