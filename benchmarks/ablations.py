"""One change at a time, on Multi30k: the rows of Table 3 at this size, and the recipes of docs/recipes.md.

    taskset -c 0 python benchmarks/ablations.py --data DIR --runs DIR [--only NAME ...] [--seeds 2] [--output DIR]

Each row is configs/multi30k.py:plain with one thing changed. A row of the group "table3" changes what a row of the
paper changes, by the same factor where the sizes allow. DIR has what benchmarks/multi30k.py asks for. Other flags are
keys of every config, as in --model.dtype=bfloat16.

The row `base` is timed first (`timed_runs.py`). All rows make as many updates as `base` makes in --minutes, because all
rows of Table 3 make equally many steps. So a larger model takes longer. The same command resumes after a stop, also in
the middle of a run. It repeats no run that OUTPUT has, even on another machine. OUTPUT gets a JSON file and the
translations of each run, and `table3.md` and `recipes.md` of all finished runs. `table3.svg` has the validation
perplexity of each row of Table 3 over its updates, a line for each seed. In the tables "difference" is the mean BLEU
less that of `base` with the same seeds, and p is the p-value of `paired.py` over these seeds.
"""

import argparse
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import children
import multi30k
import paired
import programs
import report
import text
import timed_runs
import training_curves
from timed_runs import Model
from training_curves import Panel

from transformer_jax.paper.table3 import ROWS as PAPER

BASE = "base"
CONFIG = "multi30k.py:plain"
# Name -> the keys that change, and the paper's row that changes the same.
TABLE3: dict[str, tuple[tuple[str, ...], str]] = {
  "A-h1": (("model.num_heads=1",), "A-h1"),
  "A-h16": (("model.num_heads=16",), "A-h32"),
  "B-dk8": (("model.d_k=8",), "B-dk16"),
  "C-N2": (("model.num_layers=2",), "C-N4"),
  "C-N6": (("model.num_layers=6",), "C-N8"),
  "C-d64": (("model.d_model=64",), "C-d256"),
  "C-d256": (("model.d_model=256",), "C-d1024"),
  "C-dff512": (("model.d_ff=512",), "C-dff4096"),
  "D-drop0.0": (("model.dropout=0.0",), "D-drop0.0"),
  "D-drop0.4": (("model.dropout=0.4",), "D-drop0.2"),
  "D-ls0.0": (("train.label_smoothing=0.0",), "D-ls0.0"),
  "E-learned": (("model.learned_positions=true",), "E-learned"),
}
RECIPES: dict[str, tuple[str, ...]] = {
  "bpe-dropout": ("data.bpe_dropout=0.1",),
  "unigram": ("data.pieces=unigram", "data.unigram_alpha=0.2"),
  "adamw": ("train.optimizer=adamw", "train.weight_decay=0.01"),
  "cosine": ("train.schedule=cosine",),
  "linear": ("train.schedule=linear",),
  "clip": ("train.clip_norm=1",),
  "shards": ("data.shard_pairs=3000",),
  "deep-shallow": ("model.encoder_layers=6", "model.decoder_layers=2"),
  "pre-norm": ("model.pre_norm=true",),
  "bpe-dropout-pre-norm": ("data.bpe_dropout=0.1", "model.pre_norm=true"),
  "unigram-pre-norm": ("data.pieces=unigram", "data.unigram_alpha=0.2", "model.pre_norm=true"),
  "deep-shallow-pre-norm": ("model.encoder_layers=6", "model.decoder_layers=2", "model.pre_norm=true"),
}


def models(seeds: int) -> dict[str, Model]:
  """All rows, `base` first."""
  changes = {BASE: (), **{name: keys for name, (keys, _) in TABLE3.items()}, **RECIPES}
  return {name: Model(seeds, CONFIG, keys) for name, keys in changes.items()}


def main() -> None:
  args, keys = parse()
  children.end_children()
  output = Path(args.output)
  sweep = timed_runs.Sweep(models(args.seeds), args.data, Path(args.runs), output, args.minutes, keys)
  seconds = timed_runs.seconds_of(sweep, [BASE])[BASE]
  results = timed_runs.make(sweep, args.only, dict.fromkeys(sweep.models, seconds))
  reference = text.lines(Path(multi30k.files(args.data, timed_runs.TEST)[1]))
  draw(results, output / "table3.svg")
  write(results, {translated.stem: text.lines(translated) for translated in output.glob("*.de")}, reference, output)


def draw(results: Sequence[dict[str, Any]], path: Path) -> None:
  """Draws the rows A and B, the rows C, and the rows D and E, each with `base`."""
  panels = []
  for groups in ("AB", "C", "DE"):
    names = (BASE, *(name for name in TABLE3 if name[0] in groups))
    curves = {name: [result["metrics"] for result in results if result["model"] == name] for name in names}
    panels.append(Panel({name: runs for name, runs in curves.items() if runs}, "validation perplexity", "perplexity"))
  training_curves.draw(panels, path)


def parse() -> tuple[argparse.Namespace, list[str]]:
  names = list(models(1))
  parser = argparse.ArgumentParser(description="One change at a time, on Multi30k.", allow_abbrev=False)
  add = parser.add_argument
  add("--data", required=True, metavar="DIR", help="with tok_train, tok_val and tok_test_2016_flickr")
  add("--runs", required=True, metavar="DIR", help="where the run folders are made, or found")
  add("--minutes", type=float, default=20.0, metavar="M", help="of updates of `base` (default 20)")
  add("--only", nargs="+", choices=names, default=names, metavar="NAME", help="such as base A-h1 (default all)")
  add("--seeds", type=int, default=2, metavar="N", help="of each row (default 2)")
  add("--output", default="docs/results/ablations", metavar="DIR", help="(default docs/results/ablations)")
  args, rest = parser.parse_known_args()
  return args, programs.overrides(parser, rest)


def write(
  results: Sequence[dict[str, Any]], translations: Mapping[str, list[str]], reference: list[str], output: Path
) -> None:
  """Writes the two tables of all finished runs.

  Args:
    results: the results of each run, as `timed_runs.make` returns them.
    translations: NAME-SEED -> the translations of that run.
    reference: the references of the test set.
    output: the folder.
  """
  by_name = {name: [result for result in results if result["model"] == name] for name in models(1)}
  for title, names in (("table3", TABLE3), ("recipes", RECIPES)):
    rows = [row(name, by_name, translations, reference) for name in (BASE, *names) if by_name[name]]
    report.write_table(rows, output / f"{title}.md")


def row(
  name: str,
  by_name: Mapping[str, list[dict[str, Any]]],
  translations: Mapping[str, list[str]],
  reference: list[str],
) -> dict[str, Any]:
  """A row of a table: each seed, the means, and the comparison with `base`."""
  found = by_name[name]
  perplexities = [timed_runs.curve(result["metrics"])[1][-1] for result in found]
  scores = {result["seed"]: bleu(result) for result in found}
  base = {result["seed"]: bleu(result) for result in by_name[BASE]}
  seeds = [seed for seed in scores if seed in base and name != BASE]
  texts = [[translations[f"{one}-{seed}"] for seed in seeds] for one in (BASE, name)]
  paper = PAPER[TABLE3[name][1]] if name in TABLE3 else None
  return {
    "row": name,
    "change": ", ".join(models(1)[name].keys),
    "parameters": f"{found[0]['parameters']['total']:,}",
    "validation perplexity": ", ".join(f"{value:.2f}" for value in perplexities),
    "BLEU of each seed": ", ".join(f"{value:.2f}" for value in scores.values()),
    "mean BLEU": f"{statistics.mean(scores.values()):.2f}",
    "difference": f"{statistics.mean(scores[seed] - base[seed] for seed in seeds):+.2f}" if seeds else "",
    "p": f"{paired.p_value(*texts, reference):.3f}" if seeds else "",
    **({"paper's difference": f"{paper.bleu - PAPER[BASE].bleu:+.1f} ({TABLE3[name][1]})"} if paper else {}),
  }


def bleu(result: dict[str, Any]) -> float:
  return result["test"]["scores"]["bleu"]["score"]


if __name__ == "__main__":
  programs.run(main)
