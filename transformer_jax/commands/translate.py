"""`translate`: standard input to standard output."""

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from transformer_jax.commands.search import add_search_arguments, load, search_options

if TYPE_CHECKING:
  from transformer_jax.decoding.translator import Translation

DESCRIPTION = """\
Translates standard input, one sentence a line, to standard output: line i of the output is the translation of line i of
the input, and an empty line that of an empty line. With --n-best N each line has N lines of output, best first, of
which the last are empty where there are not so many different translations.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
  add_search_arguments(parser)
  parser.add_argument("--n-best", type=int, default=1, metavar="N", help="translations of each line (default 1)")
  parser.add_argument("--scores", action="store_true", help="write each translation's score and a tab before it")


def run(args: argparse.Namespace) -> None:
  """`translate`: standard input to standard output."""
  from transformer_jax.data.text import read_lines
  from transformer_jax.progress import Progress, say

  translator = load(args.workdir)
  interactive = {"window": 1} if sys.stdin.isatty() else {}
  with Progress("line", visible=not sys.stdout.isatty()) as progress:
    for translations in translator.translate_lines(
      read_lines(sys.stdin.buffer, "standard input"),
      **search_options(args),
      **interactive,
      n_best=args.n_best,
      progress=progress.update,
      warn=say,
    ):
      # Bytes, as UTF-8 and "\n" are not what every locale and system make of text.
      sys.stdout.buffer.write("".join(_output_lines(translations, args.n_best, args.scores)).encode())
      sys.stdout.buffer.flush()


def _output_lines(translations: "Sequence[Translation]", n_best: int, scores: bool) -> Iterator[str]:
  for translation in translations:
    yield f"{translation.score:.6f}\t{translation.text}\n" if scores else f"{translation.text}\n"
  yield from itertools.repeat("\n", n_best - len(translations))
