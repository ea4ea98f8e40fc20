"""Recipes compared on the texts of several corpora: what benchmarks/en_de.py and benchmarks/en_ko.py have in common."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import children
import multi30k
import report
from etils import epath

from transformer_jax.data.text import lines_of
from transformer_jax.evaluation import bootstrap

FIRST = "before"
SPLITS = ("valid", "test")


class Pair(NamedTuple):
  source: str
  target: str


class Texts(NamedTuple):
  """The files CORPUS.SPLIT.LANGUAGE of a folder.

  Attributes:
    folder: the folder.
    languages: the source and the target language.
    scored: the corpora that have the splits `valid` and `test`.
  """

  folder: Path
  languages: tuple[str, str]
  scored: tuple[str, ...]

  def prefixes(self, corpora: Iterable[str], split: str) -> str:
    """The texts as a key of a config names them."""
    return ";".join(str(self.folder / f"{corpus}.{split}") for corpus in corpora)

  def lines(self, corpus: str, split: str, side: int) -> list[str]:
    return lines(self.folder / f"{corpus}.{split}.{self.languages[side]}")

  def write(self, corpus: str, split: str, pairs: Sequence[Pair]) -> None:
    self.folder.mkdir(parents=True, exist_ok=True)
    for side, language in enumerate(self.languages):
      (self.folder / f"{corpus}.{split}.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs))


def pairs(prefix: Path, languages: tuple[str, str]) -> list[Pair]:
  """The pairs of PREFIX.LANGUAGE.xz."""
  sides = (lines(Path(f"{prefix}.{language}.xz")) for language in languages)
  return [Pair(*pair) for pair in zip(*sides, strict=True)]


def lines(path: Path) -> list[str]:
  return list(lines_of(epath.Path(path)))


def without(some: Iterable[Pair], others: Sequence[Pair]) -> list[Pair]:
  """The pairs whose source and target are those of no other pair."""
  sources, targets = {pair.source for pair in others}, {pair.target for pair in others}
  return [pair for pair in some if pair.source not in sources and pair.target not in targets]


def train(run: Path, config: str, texts: Texts, corpora: Iterable[str], keys: Sequence[str]) -> None:
  """Trains on some corpora, and validates on the validation sets of all."""
  flags = [f"--config={multi30k.ROOT / 'configs' / config}", f"--workdir={run}"]
  flags += [f"--config.data.train={texts.prefixes(corpora, 'train')}"]
  flags += [f"--config.data.validation={texts.prefixes(texts.scored, 'valid')}"]
  flags += [f"--config.{key}" for key in keys]
  children.train(flags)


def translate(run: Path, texts: Texts, name: str, output: Path) -> None:
  """Writes NAME.SPLIT.CORPUS.LANGUAGE, and last NAME.json: the run's metrics and provenance."""
  for split in SPLITS:
    for corpus in texts.scored:
      translation = output / f"{name}.{split}.{corpus}.{texts.languages[1]}"
      if not translation.exists():
        source = (texts.folder / f"{corpus}.{split}.{texts.languages[0]}").read_bytes()
        program = [sys.executable, "-m", "transformer_jax", "translate", "--workdir", str(run)]
        translation.write_bytes(subprocess.run(program, input=source, stdout=subprocess.PIPE, check=True).stdout)
  metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
  counts = json.loads((texts.folder / "counts.json").read_text())
  result = {"pairs": counts, "metrics": metrics, "context": report.context()}
  result["provenance"] = json.loads((run / "provenance.json").read_text())
  (output / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


def table(
  texts: Texts, output: Path, tokenize: str, more: Callable[[list[str], list[str]], dict[str, str]]
) -> list[dict[str, Any]]:
  """A row for each split and corpus with the columns of each recipe that OUTPUT has, FIRST before the others.

  Args:
    texts: the texts.
    output: the folder of the translations.
    tokenize: as sacreBLEU's.
    more: (translations, references) -> other columns of a recipe.
  """
  names = sorted((path.stem for path in output.glob("*.json")), key=lambda name: (name != FIRST, name))
  rows = []
  for split in SPLITS:
    for corpus in texts.scored:
      reference = texts.lines(corpus, split, 1)
      files = {name: output / f"{name}.{split}.{corpus}.{texts.languages[1]}" for name in names}
      found = columns({name: lines(file) for name, file in files.items()}, reference, tokenize, more)
      rows.append({"split": split, "corpus": corpus, "pairs": f"{len(reference):,}"} | found)
  return rows


def columns(
  translations: dict[str, list[str]],
  reference: list[str],
  tokenize: str,
  more: Callable[[list[str], list[str]], dict[str, str]],
) -> dict[str, str]:
  """The scores of the recipes on one text, by the name of the score and that of the recipe."""
  found = bootstrap.resampled(list(translations.values()), reference, tokenize=tokenize)
  cells = {}
  for number, (name, lines) in enumerate(translations.items()):
    scores = {"chrF2": found["chrf"][number], "BLEU": found["bleu"][number]}
    own = {title: score_and_p(score) for title, score in scores.items()} | more(lines, reference)
    cells |= {f"{title} {name}": cell for title, cell in own.items()}
  return cells


def score_and_p(found: bootstrap.Resampled) -> str:
  return f"{found.score:.2f}" + ("" if found.p_value is None else f" (p {found.p_value:.3f})")


def write_table(rows: list[dict[str, Any]], output: Path) -> None:
  (output / "table.md").write_text(report.table(rows) + "\n")
  print(report.table(rows))
