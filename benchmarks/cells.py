"""The cells of a recurrent encoder-decoder and its depth, at equal parameters and in equal time, on Multi30k.

    taskset -c 0 python benchmarks/cells.py --data DIR --runs DIR [--minutes 20] [--output DIR] [--KEY=VALUE ...]

The claims are "LSTM better than RNN" and "deeper better than shallow" (Sutskever et al. 2014, §3.4): the cells rnn, gru
and lstm with 1, 2 and 4 layers in the encoder and in the decoder, two seeds each, without attention. DIR has what
benchmarks/multi30k.py asks for, and other flags are keys of every config, both as in benchmarks/lineage.py. The width
of each model is chosen so that it has --parameters parameters, to within 2%.

All models are first timed in turns (`timed_runs.py`); each run then makes as many updates as fit in --minutes on the
cores that the program has: `taskset` gives it one. The same command resumes after a stop, also in the middle of a run,
and repeats no run that OUTPUT has, even on another machine. OUTPUT gets a JSON file and the translations of each run,
and `cells.json`, the table `cells.md` and the picture `cells.svg` of all finished runs. --only chooses runs, --quick
takes tiny sizes to try the program.
"""

import argparse
import itertools
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import children
import programs
import report
import timed_runs

from transformer_jax.analysis import requirements

KINDS = {"rnn": "rnn", "gru": "gru", "lstm": "plain"}  # cell -> kind in configs/rnn.py
LAYERS = (1, 2, 4)
SEEDS = 2
PARAMETERS = 2_560_512  # of configs/multi30k.py
TOLERANCE = 0.02
QUICK = (
  "model.d_model=16",
  "model.vocab_size=1000",
  "train.batch_tokens=256",
  "train.warmup_steps=20",
  "decode.beam_size=1",
  "decode.extra_length=3",
)
QUICK_PARAMETERS = 200_000


def main() -> None:
  args, keys = parse()
  children.end_children()
  widths = {(cell, layers): width(cell, layers, args.parameters, keys) for cell in KINDS for layers in LAYERS}
  print(report.table([size_row(*name, *found) for name, found in widths.items()]), flush=True)
  models = {f"{cell}-{layers}": model(cell, layers, found) for (cell, layers), (found, _) in widths.items()}
  output = Path(args.output)
  sweep = timed_runs.Sweep(models, args.data, Path(args.runs), output, args.minutes, keys)
  for found in timed_runs.finished(sweep):
    cell, layers = found["model"].split("-")
    if found["parameters"]["total"] != widths[cell, int(layers)][1]:
      sys.exit(f"{output} has results of other --parameters: choose another --output")
  results = timed_runs.make(sweep, args.only, timed_runs.seconds_of(sweep, args.only))
  rows = [result_row(name, found) for name in models if (found := [r for r in results if r["model"] == name])]
  (output / "cells.md").write_text(report.table(rows) + "\n")
  draw(results, output / "cells.svg")
  shown = {"minutes": args.minutes, "keys": keys, "runs": [summary(result) for result in results]}
  report.finish("cells", rows, str(output / "cells.json"), **shown)


def parse() -> tuple[argparse.Namespace, list[str]]:
  names = [f"{cell}-{layers}" for cell in KINDS for layers in LAYERS]
  parser = argparse.ArgumentParser(description="Cells of a recurrent encoder-decoder, and depth.", allow_abbrev=False)
  add = parser.add_argument
  add("--data", required=True, metavar="DIR", help="with tok_train, tok_val and tok_test_2016_flickr")
  add("--runs", required=True, metavar="DIR", help="where the run folders are made, or found")
  add("--minutes", type=float, default=20.0, metavar="M", help="of updates in each run (default 20)")
  add("--parameters", type=int, metavar="N", help=f"of each model (default {PARAMETERS:,})")
  add("--only", nargs="+", choices=names, default=names, metavar="NAME", help="such as rnn-1 (default all)")
  add("--quick", action="store_true", help="tiny sizes, to try the program")
  add("--output", default="docs/results/cells", metavar="DIR", help="for results (default docs/results/cells)")
  args, rest = parser.parse_known_args()
  keys = [*(QUICK if args.quick else ()), *programs.overrides(parser, rest)]
  args.parameters = args.parameters or (QUICK_PARAMETERS if args.quick else PARAMETERS)
  return args, keys


def model(cell: str, layers: int, width: int) -> timed_runs.Model:
  """The model of a cell and a number of layers."""
  keys = f"model.num_layers={layers}", f"model.hidden_size={width}"
  return timed_runs.Model(SEEDS, f"rnn.py:{KINDS[cell]}", keys)


def width(cell: str, layers: int, most: int, keys: list[str]) -> tuple[int, int]:
  """The width of a state with which a model has the nearest number of parameters to `most`.

  Each matrix has at most two sides that grow with the width, so the number is a quadratic function of it, which three
  widths determine.

  Returns:
    The width, and the number of parameters.
  """

  def parameters(width: int) -> int:
    flags = timed_runs.flags(model(cell, layers, width), 1, "", keys)
    return requirements.parameters(timed_runs.rates.config_of(flags))["total"]

  one, two, three = map(parameters, (1, 2, 3))

  def quadratic(width: int) -> int:
    return one + (width - 1) * (two - one) + (width - 1) * (width - 2) // 2 * (three - 2 * two + one)

  above = next(width for width in itertools.count(2) if quadratic(width) >= most)
  nearest = min((above - 1, above), key=lambda width: abs(quadratic(width) - most))
  found = parameters(nearest)
  if abs(found - most) > TOLERANCE * most:
    sys.exit(f"{cell} with {layers} layers has {found:,} parameters at best, not {most:,}: choose other --parameters")
  return nearest, found


def size_row(cell: str, layers: int, width: int, parameters: int) -> dict[str, Any]:
  return {"cell": cell, "layers": str(layers), "hidden size": str(width), "parameters": f"{parameters:,}"}


def summary(result: dict[str, Any]) -> dict[str, Any]:
  """The part of a run's results that `cells.json` has."""
  steps, perplexities = timed_runs.curve(result["metrics"])
  bleu = result["test"]["scores"]["bleu"]
  return {
    "model": result["model"],
    "seed": result["seed"],
    "parameters": result["parameters"]["total"],
    "updates": result["test"]["run"]["step"],
    "seconds_of_an_update": result["seconds_of_an_update"],
    "perplexity": perplexities[-1],
    "bleu": bleu["score"],
    "signature": bleu["signature"],
    "curve": {"steps": steps, "perplexities": perplexities},
    "provenance": result["provenance"],
  }


def result_row(name: str, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
  """A row of the table, with each seed and the mean."""
  cell, layers = name.split("-")
  runs = [summary(result) for result in results]

  def both(key: str) -> str:
    return ", ".join(f"{run[key]:.2f}" for run in runs)

  return {
    "cell": cell,
    "layers": layers,
    "parameters": f"{runs[0]['parameters']:,}",
    "updates": f"{runs[0]['updates']:,}",
    "perplexity of each seed": both("perplexity"),
    "mean perplexity": f"{statistics.mean(run['perplexity'] for run in runs):.2f}",
    "BLEU of each seed": both("bleu"),
    "mean BLEU": f"{statistics.mean(run['bleu'] for run in runs):.2f}",
  }


def draw(results: Sequence[dict[str, Any]], path: Path) -> None:
  """Draws perplexity and BLEU over the number of layers: a point for each run, a line through the means."""
  plt = report.pyplot()
  figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
  for axis, key, label in zip(axes, ("perplexity", "bleu"), ("validation perplexity", "test BLEU"), strict=True):
    for number, cell in enumerate(KINDS):
      found = {layers: values(results, f"{cell}-{layers}", key) for layers in LAYERS}
      found = {layers: each for layers, each in found.items() if each}
      points = [(layers, value) for layers, each in found.items() for value in each]
      axis.plot(*zip(*points, strict=True) if points else ([], []), "osD"[number], color=f"C{number}")
      means = [statistics.mean(each) for each in found.values()]
      line = ("-", "--", ":")[number]
      axis.plot(list(found), means, "osD"[number] + line, color=f"C{number}", label=cell, markersize=4)
    axis.set(xlabel="layers of encoder and decoder", ylabel=label, xticks=LAYERS)
    axis.grid(alpha=0.3)
  axes[0].set_yscale("log")
  axes[0].set_yticks((10, 20, 30, 40, 50), ("10", "20", "30", "40", "50"))
  axes[0].minorticks_off()
  axes[0].legend()
  figure.savefig(path, metadata={"Date": None})


def values(results: Sequence[dict[str, Any]], name: str, key: str) -> list[float]:
  return [summary(result)[key] for result in results if result["model"] == name]


if __name__ == "__main__":
  programs.run(main)
