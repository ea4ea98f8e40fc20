"""Tells what each head of a Transformer does: prints a table with the entropy of its weights in bits, the mean distance
of query and key, its weight on the previous, the same and the next position, and how BLEU and loss change without it.
The text is translated once for each head. A row is printed as soon as it is known.
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_jax.commands.output_file import local_folder
from transformer_jax.commands.pictures import require_matplotlib
from transformer_jax.commands.search import load
from transformer_jax.commands.workdir import add_pairs, add_workdir_arguments, run_to_restore
from transformer_jax.runtime.errors import one_line, require_option, writing
from transformer_jax.runtime.files import write_atomically

if TYPE_CHECKING:
  from transformer_jax.inside.heads import Head

_WIDTH = 11  # of a column


def add_arguments(parser: argparse.ArgumentParser) -> None:
  add_workdir_arguments(parser)
  add_pairs(parser)
  add = parser.add_argument
  add("--sentences", type=int, default=200, metavar="N", help="take the first N pairs (default 200)")
  add("--json", action="store_true", help="print a JSON object for each head")
  add("--output", metavar="DIR", help="write the pictures heads.png and heads.svg there")


def run(args: argparse.Namespace) -> None:
  from transformer_jax.data.pipeline import read_text_pairs
  from transformer_jax.inside import heads
  from transformer_jax.runtime.progress import Progress, print_above, say

  require_option("--sentences", args.sentences, args.sentences > 0, "positive")
  output = _folder(args.output) if args.output else None  # a wrong one is known before the long work
  opened = run_to_restore(args.workdir, args, "translate")
  pairs = read_text_pairs(opened.config.data, args.data, args.sentences)
  if output:
    with writing(output):
      output.mkdir(parents=True, exist_ok=True)
  translator, found = load([opened], args), []
  total = heads.lines_to_translate(translator, pairs)
  if not args.json:
    print(_line(name.replace("_", " ") for name in heads.Head._fields))
  with Progress("line", total=total) as progress:
    for head in heads.heads(translator, pairs, progress.update, say):
      found.append(head)
      print_above(json.dumps(head._asdict()) if args.json else _row(head))
  if output:
    _draw(found, output)


def _folder(name: str) -> Path:
  """The folder of the pictures.

  Raises:
    InputError: there is a file of this name, the folder cannot be written, or matplotlib is not installed.
  """
  folder = local_folder("--output", name)
  require_matplotlib()
  return folder


def _row(head: "Head") -> str:
  numbers = [f"{value:.3f}" for value in head[3:-2]]
  return _line([head.kind, head.layer, head.head, *numbers, f"{head.bleu_lost:.2f}", f"{head.loss_added:.4f}"])


def _line(values: Iterable[object]) -> str:
  return "".join(f"{value:>{_WIDTH}}" for value in values)


def _draw(found: "list[Head]", folder: Path) -> None:
  from transformer_jax.inside import figures, heads_picture
  from transformer_jax.runtime.progress import say

  files, _ = figures.files(heads_picture.bleu_lost(found))
  for ending, content in files.items():
    write_atomically(folder / f"heads.{ending}", content)
  say(f"the picture is {one_line(folder / 'heads.png')}, and heads.svg beside it")
