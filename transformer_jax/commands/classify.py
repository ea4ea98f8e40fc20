"""Classifies standard input, one sentence per line, with a fine-tuned BERT (configs/bert.py:classify): line i of the
output is the label of line i of the input, written as the lines come. If a sentence is longer than a row, only its
beginning is read, with a warning.
"""

import argparse
import sys

from transformer_jax.commands.workdir import add_workdir_arguments, run_to_restore


def add_arguments(parser: argparse.ArgumentParser) -> None:
  add_workdir_arguments(parser)
  parser.add_argument("--scores", action="store_true", help="write each label's probability and a tab before it")


def run(args: argparse.Namespace) -> None:
  from transformer_jax.commands.streams import Lines, Output, descriptor
  from transformer_jax.data.text import read_lines
  from transformer_jax.runtime.progress import Progress, say
  from transformer_jax.tasks.classifier import Classifier

  source = Lines(descriptor(sys.stdin, "standard input"))
  target = descriptor(sys.stdout, "standard output")
  classifier = Classifier.load(run_to_restore(args.workdir, args, "classify"), step=args.step)
  lines = read_lines(source.readline, "standard input")
  with Output(target) as output, Progress("line", visible=not sys.stdout.isatty()) as progress:
    for number, found in enumerate(classifier.classify(lines, source.more), 1):
      if found.cut:
        length = classifier.config.data.row_length
        allowed = f"{length - 2} tokens, as many as config.data.row_length = {length} allows"
        say(f"line {number} has more than {allowed}: it is cut")
      output.write(f"{found.probability:.6f}\t{found.label}\n" if args.scores else f"{found.label}\n")
      progress.update(1)
