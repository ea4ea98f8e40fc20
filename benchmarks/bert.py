"""BERT, pre-trained on plain text and fine-tuned to classify sentences from few examples.

    python benchmarks/bert.py --text FILE [FILE ...] --classes NAME=FILE NAME=FILE [...] --runs DIR --json FILE

--text is plain, .gz or .xz; BERT learns from the first nine tenths of the lines of each file, and its two pre-training
losses are measured on the rest. Each FILE of --classes has sentences of one class, one per line. Of each class the
program takes --examples sentences to learn from and --held-out others to score. They are different lines with at least
five words, drawn at random, and the same at each call. Flags `--config.KEY=VALUE` apply to the pre-training.

The table has the accuracy on the held-out sentences, for --seeds fine-tunings each:

- "pre-trained": from the parameters of the pre-training,
- "from random parameters": the same config, vocabulary and updates,
- "naive Bayes": multinomial over lowercased words, with add-one smoothing.

The held-out sentences choose nothing: the parameters of the last update are scored. The same command resumes a stopped
run.
"""

import argparse
import collections
import math
import random
import statistics
import sys
from pathlib import Path
from typing import Any

import children
import programs
import report
from kneser_ney import split

from transformer_jax import runs
from transformer_jax.data.text import lines_of

Examples = dict[str, list[str]]  # sentences by the name of their class


def main() -> None:
  args, keys = parse()
  children.end_children()
  classes = dict(each.split("=", 1) for each in args.classes)
  taught, asked = chosen(classes, args.examples, args.held_out)
  args.runs.mkdir(parents=True, exist_ok=True)
  files = [write(args.runs / f"{name}.tsv", some) for name, some in (("taught", taught), ("asked", asked))]
  pretrained = args.runs / "pretrained"
  texts = [split(text, args.runs / "text" / f"{number}-{text.name}") for number, text in enumerate(args.text, 1)]
  train(
    pretrained,
    "bert.py",
    *keys,
    f"--config.data.train={';'.join(str(text['train']) for text in texts)}",
    f"--config.data.validation={';'.join(str(text['test']) for text in texts)}",
  )
  sizes = [key for key in keys if key.startswith("--config.model.")]  # the other start has them from its run
  starts = {
    "pre-trained": [f"--config.train.init_from={pretrained}"],
    "from random parameters": [f"--config.data.tokenizer={pretrained / 'tokenizer.model'}", *sizes],
  }
  accuracies = {
    start: [
      fine_tuned(args.runs / f"{start.replace(' ', '-')}-{seed}", seed, [*classes], files, [*flags, *args.fine_tuning])
      for seed in range(1, args.seeds + 1)
    ]
    for start, flags in starts.items()
  } | {"naive Bayes": [naive_bayes(taught, asked)]}
  report.finish(
    "bert",
    [{"start": start, **row(values)} for start, values in accuracies.items()],
    args.json,
    accuracies=accuracies,
    examples={"taught": len(taught) * args.examples, "asked": len(asked) * args.held_out},
    pretraining=summary(runs.open(pretrained).metrics),
  )


def summary(metrics: list[dict[str, Any]]) -> dict[str, Any]:
  """What the pre-training took, and its losses on the held-out text."""
  updates = [line for line in metrics if line["split"] == "train"]
  return {
    "steps": updates[-1]["step"],
    "seconds": sum(line["seconds"] for line in updates),
    "held out": [line for line in metrics if line["split"] == "validation"],
  }


def parse() -> tuple[argparse.Namespace, list[str]]:
  parser = argparse.ArgumentParser(description="BERT on few examples.", allow_abbrev=False)
  add = parser.add_argument
  add("--text", required=True, nargs="+", type=Path, metavar="FILE", help="to pre-train on")
  add("--classes", required=True, nargs="+", metavar="NAME=FILE", help="sentences of a class, a line each")
  add("--runs", required=True, type=Path, metavar="DIR", help="where the run folders are made, or found")
  add("--examples", type=int, default=100, metavar="N", help="sentences of each class to learn from (default 100)")
  add("--held-out", type=int, default=500, metavar="N", help="sentences of each class to be scored (default 500)")
  add("--seeds", type=int, default=3, metavar="N", help="fine-tunings (default 3)")
  add("--fine-tuning", nargs="*", default=[], metavar="FLAG", help="as in config.train.steps=300, of the fine-tuning")
  report.add_arguments(parser, with_peers=False)
  args, keys = parser.parse_known_args()
  args.fine_tuning = [f"--{flag}" for flag in args.fine_tuning]
  if strange := [key for key in keys if not key.startswith("--config.")]:
    parser.error(f"unknown: {' '.join(strange)}")
  if unnamed := [each for each in args.classes if "=" not in each]:
    parser.error(f"--classes takes NAME=FILE, not {' '.join(unnamed)}")
  return args, keys


def chosen(classes: dict[str, str], examples: int, held_out: int) -> tuple[Examples, Examples]:
  """Sentences to learn from, and others to be scored."""
  taught, asked = {}, {}
  for name, file in classes.items():
    lines = dict.fromkeys(line for line in lines_of(file) if len(line.split()) >= 5 and "\t" not in line)
    if len(lines) < examples + held_out:
      sys.exit(f"{file} has {len(lines)} such sentences, fewer than --examples and --held-out together")
    some = random.Random(0).sample([*lines], examples + held_out)
    taught[name], asked[name] = some[:examples], some[examples:]
  return taught, asked


def write(path: Path, examples: Examples) -> Path:
  """Writes a file of lines LABEL<TAB>SENTENCE."""
  lines = [f"{name}\t{sentence}\n" for name, sentences in examples.items() for sentence in sentences]
  path.write_bytes("".join(lines).encode())
  return path


def train(workdir: Path, config: str, *flags: str) -> None:
  children.train([f"--config={children.ROOT / 'configs' / config}", f"--workdir={workdir}", *flags])


def fine_tuned(workdir: Path, seed: int, classes: list[str], files: list[Path], flags: list[str]) -> float:
  """The accuracy after the last update."""
  taught, asked = files
  data = [f"--config.data.train={taught}", f"--config.data.validation={asked}", "--config.evaluate.every=0"]
  labels = f"--config.model.labels={','.join(classes)}"
  train(workdir, "bert.py:classify", f"--config.train.seed={seed}", labels, *data, *flags)
  return [line["accuracy"] for line in runs.open(workdir).metrics if line["split"] == "validation"][-1]


def naive_bayes(taught: Examples, asked: Examples) -> float:
  """The share of sentences whose class has the largest product of the probabilities of their words."""
  counts = {name: collections.Counter(words(" ".join(sentences))) for name, sentences in taught.items()}
  kinds = len(set().union(*counts.values()))

  def likelihood(name: str, sentence: str) -> float:
    whole = counts[name].total() + kinds
    return sum(math.log((counts[name][word] + 1) / whole) for word in words(sentence))

  right = [
    max(counts, key=lambda other: likelihood(other, sentence)) == name
    for name, sentences in asked.items()
    for sentence in sentences
  ]
  return statistics.mean(right)


def words(text: str) -> list[str]:
  return text.lower().split()


def row(accuracies: list[float]) -> dict[str, str]:
  return {
    "accuracy": f"{statistics.mean(accuracies):.1%}",
    "of each seed": ", ".join(f"{value:.1%}" for value in accuracies),
  }


if __name__ == "__main__":
  programs.run(main)
