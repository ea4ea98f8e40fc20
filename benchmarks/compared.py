"""Recipes compared on the texts of several corpora: what benchmarks/en_de.py and benchmarks/en_ko.py have in common."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import children
import programs
import report
import text
import training_curves
from training_curves import Panel

from transformer_jax import runs
from transformer_jax.data.text import lines_of, zip_lines
from transformer_jax.evaluation import bootstrap
from transformer_jax.runtime.files import write_atomically

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
    return text.lines(self.folder / f"{corpus}.{split}.{self.languages[side]}")

  def write(self, corpus: str, split: str, pairs: Sequence[Pair]) -> None:
    self.folder.mkdir(parents=True, exist_ok=True)
    for side, language in enumerate(self.languages):
      (self.folder / f"{corpus}.{split}.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs))


def begun(
  args: argparse.Namespace,
  languages: tuple[str, str],
  corpora: tuple[str, ...],
  write_texts: Callable[[Path, Texts], None],
) -> tuple[Path, Path, Texts]:
  """The folders of the runs and of the results, and the texts, which are written if they are not there."""
  folder, output = Path(args.runs), Path(args.output)
  texts = Texts(folder / "text", languages, corpora)
  output.mkdir(parents=True, exist_ok=True)
  if not (texts.folder / "counts.json").exists():
    write_texts(Path(args.data), texts)
  return folder, output, texts


def pairs(prefix: Path, languages: tuple[str, str]) -> list[Pair]:
  """The pairs of PREFIX.LANGUAGE.xz."""
  names = [f"{prefix}.{language}.xz" for language in languages]
  return [Pair(*pair) for pair in zip_lines(*map(lines_of, names), *names)]


def without(some: Iterable[Pair], others: Sequence[Pair]) -> list[Pair]:
  """The pairs whose source and target are those of no other pair."""
  sources, targets = {pair.source for pair in others}, {pair.target for pair in others}
  return [pair for pair in some if pair.source not in sources and pair.target not in targets]


class Recipe(NamedTuple):
  """A recipe, as `NAME.json` has it.

  Attributes:
    name: its name.
    config: the file in `configs/`.
    corpora: what is read in training.
    keys: keys of the config, as `KEY=VALUE`.
  """

  name: str
  config: str
  corpora: tuple[str, ...]
  keys: tuple[str, ...]


def make(recipe: Recipe, run: Path, texts: Texts, output: Path) -> None:
  """Trains, and writes NAME.SPLIT.CORPUS.LANGUAGE and last NAME.json; finished parts are not repeated.

  NAME.json has the recipe, and the run's metrics and provenance. Until it is written, NAME.recipe has the recipe. If
  one of them has another recipe, the program ends. Runs and texts are in one folder, which the recipe there does not
  name.
  """
  done = output / f"{recipe.name}.json"
  keys = [key.replace(f"{run.parent}/", "") for key in recipe.keys]
  made = {"corpora": [*recipe.corpora], "keys": keys}
  if done.exists():
    if json.loads(done.read_text()).get("recipe") != made:
      sys.exit(f"{done} is of another recipe: choose another --name or --output")
    return
  begun = output / f"{recipe.name}.recipe"
  if begun.exists() and json.loads(begun.read_text()) != made:
    sys.exit(f"{begun} is of another recipe: choose another --name or --output")
  write_atomically(begun, json.dumps(made).encode())
  train(recipe, run, texts)
  for split in SPLITS:
    for corpus in texts.scored:
      source = (texts.folder / f"{corpus}.{split}.{texts.languages[0]}").read_bytes()
      translation = output / f"{recipe.name}.{split}.{corpus}.{texts.languages[1]}"
      programs.once(translation, lambda source=source: children.command(["translate", "--workdir", str(run)], source))
  result = {
    "recipe": made,
    "pairs": json.loads((texts.folder / "counts.json").read_text()),
    "metrics": runs.open(run).metrics,
    "context": report.context(),
    "provenance": runs.open(run).provenance,
  }
  write_atomically(done, f"{json.dumps(result, indent=1)}\n".encode())
  begun.unlink()


def train(recipe: Recipe, run: Path, texts: Texts) -> None:
  """Trains on the corpora of the recipe, and validates on the validation sets of all."""
  flags = [f"--config={children.ROOT / 'configs' / recipe.config}", f"--workdir={run}"]
  flags += [f"--config.data.train={texts.prefixes(recipe.corpora, 'train')}"]
  flags += [f"--config.data.validation={texts.prefixes(texts.scored, 'valid')}"]
  flags += [f"--config.{key}" for key in recipe.keys]
  children.train(flags)


def table(
  texts: Texts, output: Path, tokenize: str, more: Callable[[list[str], list[str]], dict[str, str]]
) -> list[dict[str, Any]]:
  """A row for each split and corpus with the columns of each recipe.

  Args:
    texts: the texts.
    output: the folder of the translations.
    tokenize: as sacreBLEU's.
    more: (translations, references) -> other columns of a recipe.
  """
  rows = []
  for split in SPLITS:
    for corpus in texts.scored:
      reference = texts.lines(corpus, split, 1)
      files = {name: output / f"{name}.{split}.{corpus}.{texts.languages[1]}" for name in names(output)}
      found = columns({name: text.lines(file) for name, file in files.items()}, reference, tokenize, more)
      rows.append({"split": split, "corpus": corpus, "pairs": f"{len(reference):,}"} | found)
  return rows


def draw(output: Path) -> None:
  """Draws the training of all recipes that OUTPUT has, as `curve.svg`."""
  curves = {name: [json.loads((output / f"{name}.json").read_text())["metrics"]] for name in names(output)}
  panels = [
    Panel(curves, "loss of the training text", "loss", "train"),
    Panel(curves, "validation perplexity", "perplexity"),
    Panel(curves, "BLEU of validation sentences", "bleu"),
  ]
  training_curves.draw(panels, output / "curve.svg")


def names(output: Path) -> list[str]:
  """The recipes that OUTPUT has, FIRST before the others."""
  return sorted((path.stem for path in output.glob("*.json")), key=lambda name: (name != FIRST, name))


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
