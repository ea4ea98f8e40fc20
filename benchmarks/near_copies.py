"""English to Korean: how far scores rest on lines that nearly repeat the training text.

    pip install -e '.[benchmarks]'
    python benchmarks/near_copies.py --text RUNS/text [--least 0.7] [--output DIR]

RUNS/text has the texts of benchmarks/en_ko.py, and OUTPUT its translations. A line is a near-copy if its source is
similar to a source of the training text of any corpus. The similarity of two sources is twice the length of their
longest common subsequence of words, divided by the number of words of both. Words are lowercased, and each sign is one.

OUTPUT/near_copies.md has, for each split and corpus, the number of near-copies, and for each recipe chrF2 and the BLEU
of characters, of all lines and without the near-copies.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import compared
import en_ko
import programs
import report
import text
from compared import Texts
from rapidfuzz import process
from rapidfuzz.distance import Indel

from transformer_jax.evaluation.scores import score


def main() -> None:
  parser = argparse.ArgumentParser(description="Lines that nearly repeat the training text.", allow_abbrev=False)
  add = parser.add_argument
  add("--text", required=True, metavar="DIR", help="with the texts of benchmarks/en_ko.py")
  add("--least", type=float, default=0.7, metavar="R", help="the similarity of a near-copy (default 0.7)")
  add("--output", default="docs/results/en_ko", metavar="DIR", help="(default docs/results/en_ko)")
  args = parser.parse_args()
  texts, output = Texts(Path(args.text), en_ko.LANGUAGES, en_ko.CORPORA), Path(args.output)
  report.write_table(rows(texts, output, args.least), output / "near_copies.md")


def rows(texts: Texts, output: Path, least: float) -> list[dict[str, Any]]:
  """A row for each split and corpus."""
  train = [words(source) for corpus in texts.scored for source in texts.lines(corpus, "train", 0)]
  found = []
  for split in compared.SPLITS:
    for corpus in texts.scored:
      near = near_copies([words(source) for source in texts.lines(corpus, split, 0)], train, least)
      reference = texts.lines(corpus, split, 1)
      row = {"split": split, "corpus": corpus, "lines": len(near), "near-copies": sum(near)}
      for name in compared.names(output):
        lines = text.lines(output / f"{name}.{split}.{corpus}.{texts.languages[1]}")
        row |= {f"all, {name}": scores(lines, reference, [True] * len(near))}
        row |= {f"without, {name}": scores(lines, reference, [not copied for copied in near])}
      found.append(row)
      report.progress(f"{split} {corpus}: {sum(near)} of {len(near)}")
  return found


def words(source: str) -> tuple[str, ...]:
  """The words and signs of a text."""
  return tuple(re.findall(r"\w+|[^\w\s]", source.lower()))


def near_copies(sources: Sequence[Sequence[str]], train: Sequence[Sequence[str]], least: float) -> list[bool]:
  """Whether the similarity of each source to one of `train` is at least that; one without words is no copy."""
  similarity = Indel.normalized_similarity
  return [
    bool(source) and process.extractOne(source, train, scorer=similarity, score_cutoff=least) is not None
    for source in sources
  ]


def scores(lines: Sequence[str], reference: Sequence[str], chosen: Sequence[bool]) -> str:
  """chrF2 and the BLEU of characters of some lines."""
  sides = ([line for line, is_chosen in zip(side, chosen, strict=True) if is_chosen] for side in (lines, reference))
  found = score(*sides, tokenize="char")
  return f"{found.chrf:.2f}, {found.bleu:.2f}"


if __name__ == "__main__":
  programs.run(main)
