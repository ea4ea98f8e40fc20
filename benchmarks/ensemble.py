"""BLEU of an ensemble on Multi30k, by several ways to translate.

    python benchmarks/ensemble.py --data DIR --workdir FOLDER --workdir FOLDER ... [--output DIR]

DIR has what benchmarks/multi30k.py asks for, and the FOLDERs are its run folders, of several seeds. Each way translates
the validation set and the test set once. Of the searches, and of the ways with minimum Bayes risk (MBR), the one with
the highest BLEU on the validation set counts. Their rows are the last ones of the table, too. OUTPUT, a folder of its
own, gets the translations, `WAY.val.de` and `WAY.test_2016_flickr.de`, and `table.md`. The same command resumes after a
stop.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import children
import multi30k
import programs
import report
import text
import timed_runs
from ways_to_translate import bleu_of, file_name

SPLITS = ("val", timed_runs.TEST)
# Way -> the flags of `translate`.
WAYS: dict[str, tuple[str, ...]] = {
  "beam 5": (),
  "beam 12": ("--beam-size", "12"),
  "MBR, beam 12, BLEU": ("--beam-size", "12", "--mbr", "bleu"),
  "MBR, beam 12, chrF": ("--beam-size", "12", "--mbr", "chrf"),
  "MBR, beam 24, BLEU": ("--beam-size", "24", "--mbr", "bleu"),
  "MBR, beam 24, chrF": ("--beam-size", "24", "--mbr", "chrf"),
}


def main() -> None:
  args = parse()
  children.end_children()
  output = Path(args.output)
  programs.require_settings(output, {"data": args.data, "models": args.workdir})
  rows = [row(way, args.data, args.workdir, output) for way in WAYS]
  rows += [chosen(rows, "beam"), chosen(rows, "MBR")]
  report.write_table(rows, output / "table.md")


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="BLEU of an ensemble, on Multi30k.", allow_abbrev=False)
  add = parser.add_argument
  add("--data", required=True, metavar="DIR", help="with tok_val and tok_test_2016_flickr")
  add("--workdir", required=True, action="append", metavar="FOLDER", help="a run folder; one for each model")
  add("--output", default="ensemble", metavar="DIR", help="for the translations and the table")
  return parser.parse_args()


def row(way: str, data: str, models: Sequence[str], output: Path) -> dict[str, Any]:
  """A row of the table, after translating what is not translated."""
  bleu = {}
  for split in SPLITS:
    file = translated(way, split, data, models, output)
    bleu[split] = bleu_of(text.lines(file), text.lines(multi30k.files(data, split)[1]))
  return {"way": way, "validation BLEU": f"{bleu[SPLITS[0]]:.2f}", "BLEU": f"{bleu[SPLITS[1]]:.2f}"}


def chosen(rows: Sequence[dict[str, Any]], kind: str) -> dict[str, Any]:
  """The way with the highest BLEU on the validation set, of those that begin with `kind`; of equals the first."""
  best = max((row for row in rows if row["way"].startswith(kind)), key=lambda row: float(row["validation BLEU"]))
  return {**best, "way": f"chosen: {best['way']}"}


def translated(way: str, split: str, data: str, models: Sequence[str], output: Path) -> Path:
  """The file of the translations of a text."""
  folders = [flag for folder in models for flag in ("--workdir", folder)]
  file = output / f"{file_name(way)}.{split}.de"
  source = "".join(f"{line}\n" for line in text.lines(multi30k.files(data, split)[0])).encode()
  programs.once(file, lambda: children.command(["translate", *folders, *WAYS[way]], source))
  return file


if __name__ == "__main__":
  programs.run(main)
