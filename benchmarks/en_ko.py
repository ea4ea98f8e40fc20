"""English to Korean: holds out test documents, trains recipes, and compares each with the first on every corpus.

    python benchmarks/en_ko.py --data DIR --runs DIR [--name NAME] [--output DIR] [--KEY=VALUE ...]

DIR has a folder CORPUS_en-ko for each of the five corpora, with train and valid, each .en.xz and .ko.xz. The lines of a
corpus are in the order of its documents. Ten blocks of consecutive lines, evenly spaced, are held out as test text, up
to 600 pairs of a corpus and at most an eighth of it. Pairs of the remaining text with a source or target that is held
out, or in a validation set, of any corpus, are left out of the training, too. The texts are written to RUNS/text, and
counted.

NAME is the name of the recipe that the keys after it make, as in --name longer --train.steps=8000. The recipe is that
of configs/en_ko.py, with Tatoeba's sentences read three times in an epoch; `before` is the one that the config had. A
recipe is chosen by the validation sets; the test sets are translated once for each recipe. The same command resumes
after a stop, and repeats nothing that OUTPUT has: `NAME.json`, and the translations `NAME.SPLIT.CORPUS.ko`.

OUTPUT/table.md has, for each split and corpus, chrF2 and the BLEU of characters of all recipes that OUTPUT has, the
p-value of a paired bootstrap against `before`, and the share of lines that repeat themselves where the reference does
not: in such a line 2 to 60 characters, with a letter or digit among them, stand four times or more in a row.
OUTPUT/curve.svg has the curves of their training.
"""

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path

import children
import compared
import programs
import report
from compared import Pair, Texts

CORPORA = ("pydocs", "djangodocs", "gnomehelp", "comprehensiverust", "tatoeba")
LANGUAGES = ("en", "ko")
BLOCKS, MOST = 10, 600
BEFORE = ("model.dropout=0.1", "train.steps=2000")
EVERYDAY = 3  # how often an epoch reads Tatoeba, the last corpus
REPETITION = re.compile(r"(.{2,60}?)\1{3,}")


def main() -> None:
  children.end_children()
  args, keys = parse()
  runs, output, texts = compared.begun(args, LANGUAGES, CORPORA, write_texts)
  keys = [*own_keys(args.name, texts), *keys]
  compared.make(compared.Recipe(args.name, "en_ko.py", CORPORA, tuple(keys)), runs / args.name, texts, output)
  rows = compared.table(
    texts, output, "char", lambda lines, reference: {"repeat": f"{repeating(lines, reference):.2%}"}
  )
  report.write_table(rows, output / "table.md")
  compared.draw(output)


def parse() -> tuple[argparse.Namespace, list[str]]:
  parser = argparse.ArgumentParser(description="English to Korean.", allow_abbrev=False)
  add = parser.add_argument
  add("--data", required=True, metavar="DIR", help="with a folder for each corpus")
  add("--runs", required=True, metavar="DIR", help="where the texts and run folders are made, or found")
  add("--name", default=compared.FIRST, help="of the recipe (default before)")
  add("--output", default="docs/results/en_ko", metavar="DIR", help="(default docs/results/en_ko)")
  args, rest = parser.parse_known_args()
  return args, programs.overrides(parser, rest)


def own_keys(name: str, texts: Texts) -> tuple[str, ...]:
  """The keys of a recipe, besides those of the command line."""
  return BEFORE if name == compared.FIRST else (f"data.train={texts.prefixes(CORPORA, 'train')}*{EVERYDAY}",)


def write_texts(data: Path, texts: Texts) -> None:
  """Writes train, valid and test of each corpus, and last their numbers of pairs."""
  splits, counts = {}, {}
  for corpus in CORPORA:
    folder = data / f"{corpus}_en-ko"
    splits[corpus] = held_out(compared.pairs(folder / "train", LANGUAGES))
    splits[corpus]["valid"] = compared.pairs(folder / "valid", LANGUAGES)
  of_all = [pair for split in splits.values() for name in ("test", "valid") for pair in split[name]]
  for corpus, split in splits.items():
    counts[corpus] = {"all": sum(map(len, split.values()))}
    split["train"] = compared.without(split["train"], of_all)
    for name, some in split.items():
      counts[corpus][name] = len(some)
      texts.write(corpus, name, some)
  (texts.folder / "counts.json").write_text(json.dumps(counts, indent=1) + "\n")


def held_out(corpus: Sequence[Pair]) -> dict[str, list[Pair]]:
  """The pairs of a corpus as `test` and `train`: BLOCKS blocks, each in the middle of its tenth of the corpus."""
  size = min(MOST, len(corpus) // 8) // BLOCKS
  tenth = len(corpus) // BLOCKS
  starts = [number * tenth + (tenth - size) // 2 for number in range(BLOCKS)]
  chosen = {line for start in starts for line in range(start, start + size)}
  return {
    "test": [pair for line, pair in enumerate(corpus) if line in chosen],
    "train": [pair for line, pair in enumerate(corpus) if line not in chosen],
  }


def repeating(lines: Sequence[str], reference: Sequence[str]) -> float:
  """The share of lines that repeat themselves where the reference does not."""
  found = [repeats(line) and not repeats(right) for line, right in zip(lines, reference, strict=True)]
  return sum(found) / len(found)


def repeats(line: str) -> bool:
  return any(re.search(r"\w", match[1]) for match in REPETITION.finditer(line))


if __name__ == "__main__":
  programs.run(main)
