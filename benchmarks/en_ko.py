"""English to Korean: holds out test documents, trains recipes, and compares each with the first on every corpus.

    python benchmarks/en_ko.py --data DIR --runs DIR [--name NAME] [--output DIR] [--KEY=VALUE ...]

DIR has a folder CORPUS_en-ko for each of the five corpora, with train and valid, each .en.xz and .ko.xz. The lines of a
corpus are in the order of its documents. Ten blocks of consecutive lines, evenly spaced, are held out as test text, up
to 600 pairs of a corpus and at most an eighth of it. Pairs of the remaining text with a source or target that is held
out, or in a validation set, are left out of the training, too. The texts are written to RUNS/text, and counted.

NAME is the name of the recipe whose keys follow, as in --name longer --train.steps=8000; the first one is `before`. A
recipe is chosen by the validation sets; the test sets are translated once for each recipe. The same command resumes
after a stop, and repeats nothing that OUTPUT has: `NAME.json`, and the translations `NAME.SPLIT.CORPUS.ko`.

OUTPUT/table.md has, for each split and corpus, chrF2 and the BLEU of characters of all recipes that OUTPUT has, the
p-value of a paired bootstrap against `before`, and the share of lines that repeat themselves where the reference does
not: in such a line 2 to 60 characters, with a letter or digit among them, stand four times or more in a row.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import multi30k
import report
from etils import epath

from transformer_jax.data.text import lines_of
from transformer_jax.evaluation import bootstrap

CORPORA = ("pydocs", "djangodocs", "gnomehelp", "comprehensiverust", "tatoeba")
LANGUAGES = ("en", "ko")
BLOCKS, MOST = 10, 600
FIRST = "before"
REPETITION = re.compile(r"(.{2,60}?)\1{3,}")


class Pair(NamedTuple):
  source: str
  target: str


def main() -> None:
  args, keys = parse()
  text, output = Path(args.runs) / "text", Path(args.output)
  output.mkdir(parents=True, exist_ok=True)
  if not (text / "counts.json").exists():
    write_texts(Path(args.data), text)
  if not (output / f"{args.name}.json").exists():
    full_run(args.name, keys, Path(args.runs), text, output)
  rows = table(sorted(path.stem for path in output.glob("*.json")), text, output)
  (output / "table.md").write_text(report.table(rows) + "\n")
  print(report.table(rows))


def parse() -> tuple[argparse.Namespace, list[str]]:
  parser = argparse.ArgumentParser(description="English to Korean.", allow_abbrev=False)
  add = parser.add_argument
  add("--data", required=True, metavar="DIR", help="with a folder for each corpus")
  add("--runs", required=True, metavar="DIR", help="where the texts and run folders are made, or found")
  add("--name", default=FIRST, help="of the recipe (default before)")
  add("--output", default="docs/results/en_ko", metavar="DIR", help="(default docs/results/en_ko)")
  args, rest = parser.parse_known_args()
  return args, multi30k.overrides(parser, rest)


def write_texts(data: Path, text: Path) -> None:
  """Writes train, valid and test of each corpus to `text`, and last their numbers of pairs."""
  text.mkdir(parents=True, exist_ok=True)
  counts = {}
  for corpus in CORPORA:
    split = held_out(pairs(data, corpus, "train")) | {"valid": pairs(data, corpus, "valid")}
    counts[corpus] = {"all": sum(map(len, split.values()))}
    split["train"] = without(split["train"], split["test"] + split["valid"])
    for name, some in split.items():
      counts[corpus][name] = len(some)
      for side, language in enumerate(LANGUAGES):
        (text / f"{corpus}.{name}.{language}").write_text("".join(f"{pair[side]}\n" for pair in some))
  (text / "counts.json").write_text(json.dumps(counts, indent=1) + "\n")


def pairs(data: Path, corpus: str, name: str) -> list[Pair]:
  sides = (lines(data / f"{corpus}_en-ko" / f"{name}.{language}.xz") for language in LANGUAGES)
  return [Pair(*pair) for pair in zip(*sides, strict=True)]


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


def without(some: Iterable[Pair], others: Sequence[Pair]) -> list[Pair]:
  """The pairs whose source and target are those of no other pair."""
  sources, targets = {pair.source for pair in others}, {pair.target for pair in others}
  return [pair for pair in some if pair.source not in sources and pair.target not in targets]


def full_run(name: str, keys: list[str], runs: Path, text: Path, output: Path) -> None:
  """Trains, and translates the validation and test set of each corpus."""
  run = runs / name
  texts = {split: ";".join(str(text / f"{corpus}.{split}") for corpus in CORPORA) for split in ("train", "valid")}
  flags = [f"--config={multi30k.ROOT / 'configs' / 'en_ko.py'}", f"--workdir={run}"]
  flags += [f"--config.data.train={texts['train']}", f"--config.data.validation={texts['valid']}"]
  flags += [f"--config.{key}" for key in keys]
  subprocess.run([sys.executable, str(multi30k.ROOT / "train.py"), *flags], check=True)
  for split in ("valid", "test"):
    for corpus in CORPORA:
      translation = output / f"{name}.{split}.{corpus}.ko"
      if not translation.exists():
        source = (text / f"{corpus}.{split}.en").read_bytes()
        program = [sys.executable, "-m", "transformer_jax", "translate", "--workdir", str(run)]
        found = subprocess.run(program, input=source, stdout=subprocess.PIPE, check=True).stdout
        translation.write_bytes(found)
  metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
  counts = json.loads((text / "counts.json").read_text())
  result = {"keys": keys, "pairs": counts, "metrics": metrics, "context": report.context()}
  result["provenance"] = json.loads((run / "provenance.json").read_text())
  (output / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


def table(names: list[str], text: Path, output: Path) -> list[dict[str, Any]]:
  """A row for each split and corpus with the columns of each recipe, `before` first."""
  names = sorted(names, key=lambda name: name != FIRST)
  rows = []
  for split in ("valid", "test"):
    for corpus in CORPORA:
      reference = lines(text / f"{corpus}.{split}.ko")
      translations = {name: lines(output / f"{name}.{split}.{corpus}.ko") for name in names}
      rows.append({"split": split, "corpus": corpus, "pairs": f"{len(reference):,}"} | columns(translations, reference))
  return rows


def columns(translations: dict[str, list[str]], reference: list[str]) -> dict[str, str]:
  """The scores of the recipes on one text, by the name of the recipe and the score."""
  found = bootstrap.resampled(list(translations.values()), reference, tokenize="char")
  cells = {}
  for number, (name, lines) in enumerate(translations.items()):
    chrf, bleu = found["chrf"][number], found["bleu"][number]
    p = "" if chrf.p_value is None else f" (p {chrf.p_value:.3f})"
    cells[f"chrF2 {name}"] = f"{chrf.score:.2f}{p}"
    cells[f"BLEU {name}"] = f"{bleu.score:.2f}"
    cells[f"repeat {name}"] = f"{repeating(lines, reference):.2%}"
  return cells


def repeating(lines: Sequence[str], reference: Sequence[str]) -> float:
  """The share of lines that repeat themselves where the reference does not."""
  found = [repeats(line) and not repeats(right) for line, right in zip(lines, reference, strict=True)]
  return sum(found) / len(found)


def repeats(line: str) -> bool:
  return any(re.search(r"\w", match[1]) for match in REPETITION.finditer(line))


def lines(path: Path) -> list[str]:
  return list(lines_of(epath.Path(path)))


if __name__ == "__main__":
  main()
