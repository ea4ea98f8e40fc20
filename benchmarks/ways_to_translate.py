"""BLEU of the ways to translate of docs/decoding.md on Multi30k: wider beams, draws, minimum Bayes risk, reranking.

    taskset -c 0 python benchmarks/ways_to_translate.py --data DIR --runs DIR --models DIR [--seeds 1 2] [--output DIR]
      [--base-only] [--KEY=VALUE ...]

DIR has what benchmarks/multi30k.py asks for. MODELS has the run folders base-SEED of benchmarks/ablations.py, which
translate. Reranking needs more models of each seed: `reverse` translates from German to English, `right-to-left` has
learned targets whose words stand in reverse order, and `language-model` is one of German. They are trained in RUNS,
with --steps updates (default 3641, as the measured `base` has). Other flags are keys of their configs, too. --base-only
leaves out the ways that need these models.

Each way translates the test set once with each seed, and the validation set where something is tuned. OUTPUT gets the
translations, `WAY-SEED.de`, and `table.md`. There "difference" is the mean BLEU less that of the first row, and p is
the p-value of a paired bootstrap over the translations of all seeds together. The row "forced beginning" gives the
first three words of each reference, so it tells what a translator who types them gets. The row "back-translations" is
of `base` with a second corpus: the German captions, and draws of `reverse` for them with a tag. The same command
resumes after a stop. What OUTPUT and RUNS have is not made again, so other models or keys need others of both.
"""

import argparse
import hashlib
import json
import re
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import children
import multi30k
import paired
import programs
import report
import text
import timed_runs

from transformer_jax.config import serialization
from transformer_jax.data.text import lines_of
from transformer_jax.evaluation.scores import score
from transformer_jax.runs.run import open as open_run
from transformer_jax.runtime.files import write_atomically

SPLITS = ("val", timed_runs.TEST)
FIRST = "beam 5"
BEAM = 12
WORDS = 3
# Way -> the flags of `translate`.
WAYS: dict[str, tuple[str, ...]] = {
  FIRST: (),
  "greedy": ("--beam-size", "1"),
  "beam 12": ("--beam-size", str(BEAM)),
  "a draw": ("--sample", "--seed", "1"),
  "MBR, beam, BLEU": ("--beam-size", str(BEAM), "--mbr", "bleu"),
  "MBR, beam, chrF": ("--beam-size", str(BEAM), "--mbr", "chrf"),
  "MBR, 32 draws, BLEU": ("--sample", "--seed", "1", "--mbr", "bleu", "--candidates", "32"),
  "MBR, 32 draws, chrF": ("--sample", "--seed", "1", "--mbr", "chrf", "--candidates", "32"),
}
OTHERS = ("reverse", "right-to-left", "language-model")
OWN = "reranked by its own features"
RERANKED: dict[str, tuple[str, ...]] = {
  OWN: (),
  **{f"reranked, {name}": (name,) for name in OTHERS},
  "reranked, all three": OTHERS,
}
FORCED = f"forced beginning of {WORDS} words"
BACK = "back-translations"
# What `base` does alone, and what needs the other models.
ALONE = (*WAYS, OWN, FORCED)
OTHERS_TOO = (*(way for way in RERANKED if way != OWN), BACK)


class Study(NamedTuple):
  """The folders and settings of the program.

  Attributes:
    data: the folder of the text.
    runs: where the models of reranking are made, or found, and lists of translations.
    models: where the runs base-SEED are.
    output: where the translations go.
    keys: keys of every config, as `KEY=VALUE`.
  """

  data: str
  runs: Path
  models: Path
  output: Path
  keys: list[str]


def main() -> None:
  args, keys = parse()
  children.end_children()
  study = Study(args.data, Path(args.runs), Path(args.models), Path(args.output), [*keys, f"train.steps={args.steps}"])
  for folder in (study.runs, study.output):
    folder.mkdir(parents=True, exist_ok=True)
  for seed in args.seeds:
    require_same_model(study, seed)
    translate_by_base(study, seed)
    if not args.base_only:
      translate_by_all(study, seed)
  rows = table(study, args.seeds, ALONE if args.base_only else (*ALONE, *OTHERS_TOO))
  report.write_table(rows, study.output / "table.md")


def parse() -> tuple[argparse.Namespace, list[str]]:
  parser = argparse.ArgumentParser(description="Ways to translate, on Multi30k.", allow_abbrev=False)
  add = parser.add_argument
  add("--data", required=True, metavar="DIR", help="with tok_train, tok_val and tok_test_2016_flickr")
  add("--runs", required=True, metavar="DIR", help="where the models of reranking are made, or found")
  add("--models", required=True, metavar="DIR", help="with the runs base-SEED")
  add("--seeds", type=int, nargs="+", default=[1, 2], metavar="N", help="(default 1 2)")
  add("--steps", type=int, default=3641, metavar="N", help="of the models of reranking (default 3641)")
  add("--output", default="docs/results/ways_to_translate", metavar="DIR", help="for the translations and the table")
  add("--base-only", action="store_true", help="leave out the ways that need other models than base")
  args, rest = parser.parse_known_args()
  return args, programs.overrides(parser, rest)


def require_same_model(study: Study, seed: int) -> None:
  """Ends the program if RUNS or OUTPUT has results of this seed that another `base` or other keys gave, or may have."""
  base = open_run(study.models / f"base-{seed}")
  config = hashlib.sha256(serialization.to_json(base.config).encode()).hexdigest()
  made = {"keys": study.keys, "base": {"config": config, "step": base.checkpoints.last}}
  for folder in (study.runs, study.output):
    file = folder / f"settings-{seed}.json"
    others = [each for each in folder.iterdir() if re.search(rf"-{seed}(\.|$)", each.name) and each != file]
    if json.loads(file.read_text()) != made if file.exists() else others:
      sys.exit(f"{file} is of another model or other keys: choose another --runs and another --output")
    write_atomically(file, f"{json.dumps(made, indent=1)}\n".encode())


def translate_by_base(study: Study, seed: int) -> None:
  """Makes the translations of a seed that need `base` alone and that OUTPUT does not have."""
  source = source_of(study, timed_runs.TEST)
  for way, flags in WAYS.items():
    programs.once(path(study, way, seed), lambda flags=flags: translated(study, seed, source, flags))
  beginnings = study.runs / "beginnings"
  beginnings.write_text("".join(f"{beginning(line)}\n" for line in references(study)))
  programs.once(path(study, FORCED, seed), lambda: translated(study, seed, source, ("--prefix", str(beginnings))))
  programs.once(path(study, OWN, seed), lambda: reranked(study, OWN, seed, ()))


def translate_by_all(study: Study, seed: int) -> None:
  """Makes the translations of a seed that need other models, and trains these, if OUTPUT does not have them."""
  for way, names in RERANKED.items():
    programs.once(path(study, way, seed), lambda way=way, names=names: reranked(study, way, seed, names))
  programs.once(path(study, BACK, seed), lambda: by_back_translations(study, seed))


def by_back_translations(study: Study, seed: int) -> bytes:
  run = model(study, BACK, seed)
  return children.command(["translate", "--workdir", str(run)], source_of(study, timed_runs.TEST))


def path(study: Study, way: str, seed: int) -> Path:
  return study.output / f"{file_name(way)}-{seed}.de"


def file_name(way: str) -> str:
  return way.replace(", ", "_").replace(" ", "-")


def translated(study: Study, seed: int, source: bytes, flags: Sequence[str]) -> bytes:
  return children.command(["translate", "--workdir", str(study.models / f"base-{seed}"), *flags], source)


def n_best(study: Study, seed: int, split: str) -> Path:
  """The list of the best translations of a text."""
  file = study.runs / f"{split}-{seed}.nbest"
  flags = ("--beam-size", str(BEAM), "--n-best", str(BEAM), "--moses")
  programs.once(file, lambda: translated(study, seed, source_of(study, split), flags))
  return file


def reranked(study: Study, way: str, seed: int, names: Sequence[str]) -> bytes:
  """The translations of the test set with weights that are tuned on the validation set, and the models of `names`."""
  flags = [flag for name in names for flag in (f"--{name}", str(model(study, name, seed)))]
  lists = {split: n_best(study, seed, split) for split in SPLITS}
  weights = study.runs / f"{file_name(way)}-{seed}.json"
  texts = {split: multi30k.files(study.data, split) for split in SPLITS}

  def rerank(split: str, *more: str) -> bytes:
    files = ["--n-best", str(lists[split]), "--source", texts[split][0], "--weights", str(weights)]
    return children.command(["rerank", *files, *flags, *more])

  sys.stderr.write(rerank("val", "--reference", texts["val"][1], "--tokenize", "none", "--lowercase").decode())
  return rerank(timed_runs.TEST)


def model(study: Study, name: str, seed: int) -> Path:
  """The run folder of a model, trained if it is not."""
  run = study.runs / f"{name}-{seed}"
  if (run / "done").exists():
    return run
  base = timed_runs.Model(1, "multi30k.py:plain")
  if name == "right-to-left":
    arguments = timed_runs.flags(base, seed, str(reversed_texts(study)), study.keys)
  elif name == "reverse":
    languages = ["data.source_language=de", "data.target_language=en"]
    arguments = timed_runs.flags(base, seed, study.data, [*study.keys, *languages])
  elif name == BACK:
    corpora = f"data.train={study.data}/tok_train;{back_translated(study, seed)}"
    arguments = timed_runs.flags(base, seed, study.data, [*study.keys, corpora])
  else:
    arguments = language_model(study, seed)
  children.train([f"--workdir={run}", *arguments])
  (run / "done").touch()
  return run


def language_model(study: Study, seed: int) -> list[str]:
  """The flags of train.py for a language model of the German captions."""
  texts = {key: multi30k.files(study.data, name)[1] for key, name in (("train", "train"), ("validation", "val"))}
  keys = ["data.document=line", f"train.seed={seed}", "data.row_length=64", *study.keys]
  keys += [f"data.{key}={file}" for key, file in texts.items()]
  return [f"--config={children.ROOT / 'configs' / 'gpt.py'}", *(f"--config.{key}" for key in keys)]


def back_translated(study: Study, seed: int) -> Path:
  """The corpus of the German captions and their translations to English."""
  corpus = study.runs / f"back-{seed}"
  german = multi30k.files(study.data, "train")[1]
  flags = ["--input", german, "--output", str(corpus), "--tag", "<BT>", "--seed", str(seed)]
  children.command(["backtranslate", "--workdir", str(model(study, "reverse", seed)), *flags])
  return corpus


def reversed_texts(study: Study) -> Path:
  """A folder with the training and validation text, whose German words stand in reverse order."""
  folder = study.runs / "reversed"
  folder.mkdir(exist_ok=True)
  for name in ("train", "val"):
    source, target = (text.lines(file) for file in multi30k.files(study.data, name))
    (folder / f"tok_{name}.en").write_text("".join(f"{line}\n" for line in source))
    (folder / f"tok_{name}.de").write_text("".join(f"{' '.join(line.split()[::-1])}\n" for line in target))
  return folder


def beginning(line: str) -> str:
  return " ".join(line.split()[:WORDS])


def source_of(study: Study, split: str) -> bytes:
  return "".join(f"{line}\n" for line in lines_of(multi30k.files(study.data, split)[0])).encode()


def references(study: Study) -> list[str]:
  return text.lines(multi30k.files(study.data, timed_runs.TEST)[1])


def table(study: Study, seeds: Sequence[int], ways: Sequence[str]) -> list[dict[str, Any]]:
  """A row for each way."""
  reference = references(study)
  lines = {way: [text.lines(path(study, way, seed)) for seed in seeds] for way in ways}
  return [row(way, lines[way], lines[FIRST], reference) for way in ways]


def row(way: str, found: list[list[str]], first: list[list[str]], reference: list[str]) -> dict[str, Any]:
  """A row of the table: BLEU of each seed, and the comparison with the first way."""
  bleu = [[bleu_of(lines, reference) for lines in each] for each in (found, first)]
  difference = round(statistics.mean(bleu[0]) - statistics.mean(bleu[1]), 2) + 0.0  # no -0.00
  result = {"way": way, "BLEU of each seed": ", ".join(f"{value:.2f}" for value in bleu[0])}
  result |= {"mean BLEU": f"{statistics.mean(bleu[0]):.2f}"}
  if way == FIRST:
    return result
  return result | {"difference": f"{difference:+.2f}", "p": f"{paired.p_value(first, found, reference):.3f}"}


def bleu_of(lines: list[str], reference: list[str]) -> float:
  return score(lines, reference, tokenize="none", lowercase=True).bleu


if __name__ == "__main__":
  programs.run(main)
