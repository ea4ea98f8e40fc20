"""One model for all twelve directions between the four languages of Multi30k, beside models of one direction each.

    taskset -c 0 python benchmarks/many_languages.py --data DIR --runs DIR [--singles en-de de-en] [--output DIR]
      [--many-steps 14000] [--single-steps 3412] [--KEY=VALUE ...]

DIR has tok_train, tok_val and tok_test_2016_flickr in en, de, fr and cs, plain or .xz. All models are of
configs/multi30k.py:plain, and have its size. Other flags are keys of all their configs. A single model reads its 29,000
pairs as often as `base` of benchmarks/ablations.py. The model of all directions has 12 times as many pairs. With 4
times as many updates it sees each pair a third as often as the single models do.

OUTPUT, a folder of its own, gets the translations of the test set, `many.FROM-TO` and `single.FROM-TO`, and `table.md`:
BLEU of each direction, and the p-value of a paired bootstrap between both models. The same command resumes after a
stop, and repeats nothing that OUTPUT has.
"""

import argparse
import itertools
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import children
import multi30k
import programs
import report
import text
import timed_runs

from transformer_jax.evaluation import bootstrap

LANGUAGES = ("en", "de", "fr", "cs")
DIRECTIONS = ["-".join(pair) for pair in itertools.permutations(LANGUAGES, 2)]
MANY, SINGLE = "many", "single"


def main() -> None:
  args, keys = parse()
  children.end_children()
  runs, output = Path(args.runs), Path(args.output)
  steps = {"many": args.many_steps, "single": args.single_steps}
  programs.require_settings(output, {"data": args.data, "keys": keys, "steps": steps})
  train(runs / MANY, [*keys, *many_keys(args.data), f"train.steps={args.many_steps}"])
  for direction in DIRECTIONS:
    translate(runs / MANY, args.data, direction, output / f"{MANY}.{direction}", tagged=True)
  for direction in args.singles:
    run = runs / direction
    train(run, [*keys, *single_keys(args.data, direction), f"train.steps={args.single_steps}"])
    translate(run, args.data, direction, output / f"{SINGLE}.{direction}", tagged=False)
  rows = table(args.data, output)
  report.write_table(rows, output / "table.md")


def parse() -> tuple[argparse.Namespace, list[str]]:
  parser = argparse.ArgumentParser(description="Many languages in one model.", allow_abbrev=False)
  add = parser.add_argument
  add("--data", required=True, metavar="DIR", help="with the captions in four languages")
  add("--runs", required=True, metavar="DIR", help="where the run folders are made, or found")
  add("--singles", nargs="*", choices=DIRECTIONS, default=["en-de", "de-en"], help="models of one direction")
  add("--many-steps", type=int, default=14_000, metavar="N", help="updates of the model of all directions")
  add("--single-steps", type=int, default=3412, metavar="N", help="updates of a single model (default 3412)")
  add("--output", default="many_languages", metavar="DIR", help="for the translations and the table")
  args, rest = parser.parse_known_args()
  return args, programs.overrides(parser, rest)


def many_keys(data: str) -> list[str]:
  languages = "+".join(LANGUAGES)
  texts = {"train": "tok_train", "validation": "tok_val"}
  return ["data.tags=true", *(f"data.{key}={data}/{name}:{languages}" for key, name in texts.items())]


def single_keys(data: str, direction: str) -> list[str]:
  source, target = direction.split("-")
  texts = [f"data.train={data}/tok_train", f"data.validation={data}/tok_val"]
  return [f"data.source_language={source}", f"data.target_language={target}", *texts]


def train(run: Path, keys: Sequence[str]) -> None:
  """Trains, or goes on with, a run; a finished one is only opened."""
  config = children.ROOT / "configs" / "multi30k.py:plain"
  children.train([f"--config={config}", f"--workdir={run}", *(f"--config.{key}" for key in (*timed_runs.SHORT, *keys))])


def translate(run: Path, data: str, direction: str, file: Path, *, tagged: bool) -> None:
  """Writes the translation of the test set in one direction, if it is not there."""
  source, target = direction.split("-")
  tag = f"<2{target}> " if tagged else ""
  text = "".join(f"{tag}{line}\n" for line in test_set(data, source)).encode()
  programs.once(file, lambda: children.command(["translate", "--workdir", str(run)], text))


def test_set(data: str, language: str) -> list[str]:
  return text.lines(multi30k.files(data, timed_runs.TEST, language)[1])


def table(data: str, output: Path) -> list[dict[str, Any]]:
  """A row for each direction, and one of the means over the directions that both have."""
  rows = [row(data, output, direction) for direction in DIRECTIONS]
  both = [row for row in rows if row["single"]]
  if both:
    means = {name: f"{statistics.mean(float(row[name]) for row in both):.2f}" for name in (SINGLE, MANY)}
    rows.append({"direction": f"mean of {len(both)}", **means})
  return rows


def row(data: str, output: Path, direction: str) -> dict[str, Any]:
  files = [output / f"{name}.{direction}" for name in (SINGLE, MANY)]
  found = [text.lines(file) for file in files if file.exists()]
  reference = test_set(data, direction.split("-")[1])
  scores = bootstrap.resampled(found, reference, tokenize="none", lowercase=True)["bleu"]
  cells = [f"{score.score:.2f}" for score in scores]
  if len(cells) == 1:
    return {"direction": direction, SINGLE: "", MANY: cells[0], "p": ""}
  return {"direction": direction, SINGLE: cells[0], MANY: cells[1], "p": f"{scores[1].p_value:.3f}"}


if __name__ == "__main__":
  programs.run(main)
