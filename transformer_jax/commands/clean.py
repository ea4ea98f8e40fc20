"""Writes the sentence pairs of a corpus that pass all rules, and reports on standard error how many each rule left out.
Without flags only pairs with an empty side are left out. The rules but --scripts are OpusFilter's (docs/recipes.md).
The corpus is read line by line, so it may be larger than memory.
"""

import argparse
import os
from typing import TYPE_CHECKING

from transformer_jax.commands.output_file import local_path, require_one_meaning, require_prefix
from transformer_jax.commands.rules import add_rule_arguments, require_no_weights, rules_of
from transformer_jax.runtime.errors import InputError, require_option
from transformer_jax.runtime.process import termination_raises

if TYPE_CHECKING:
  from pathlib import Path

  from transformer_jax.data.text import TextPairs


def add_arguments(parser: argparse.ArgumentParser) -> None:
  add = parser.add_argument
  add(
    "--data",
    required=True,
    metavar="PREFIX",
    help="the sentence pairs, as config.data.train names them, but without languages as in PREFIX:en-de",
  )
  add("--output", required=True, metavar="PREFIX", help="the new files PREFIX.en and PREFIX.de")
  add("--languages", nargs=2, default=("en", "de"), metavar="L", help="source and target (default: en de)")
  add_rule_arguments(parser)
  add("--left-out", metavar="FILE", help="a new file with what is left out: number, reason, source and target, by tabs")


def run(args: argparse.Namespace) -> None:
  from transformer_jax.data import clean_files, cleaning
  from transformer_jax.runtime.progress import say

  rules = cleaning.rules_by_reason(rules_of(args, tuple(args.languages)))
  require_option("--languages", "empty", all(args.languages), "two endings of files, such as en de")
  outputs = _new_files(args)
  pairs = _pairs(args)
  require_no_weights(args, pairs, "--data")
  with termination_raises():
    report = clean_files.clean(pairs, rules, args.duplicates, outputs[0], outputs[1], outputs[2])
  say(report.describe())


def _pairs(args: argparse.Namespace) -> "TextPairs":
  from transformer_jax.data.tagged import named_directions
  from transformer_jax.data.text import TextPairs

  try:
    return TextPairs(args.data, *args.languages)
  except InputError as error:
    if named := named_directions(args.data):
      raise InputError(
        f"{error}; {named!r} in --data is no direction here: leave it out, and give two languages to --languages"
      ) from error
    raise


def _new_files(args: argparse.Namespace) -> "tuple[Path, Path, Path | None]":
  """The files to write; none of them may exist."""
  from transformer_jax.data.text import COMPRESSED

  require_prefix(args.output)
  source, target = (local_path("--output", f"{args.output}.{language}") for language in args.languages)
  require_one_meaning(local_path("--output", args.output), args.languages)
  left_out = local_path("--left-out", args.left_out) if args.left_out else None
  if len({path and os.path.realpath(path) for path in (source, target, left_out)}) < 3:
    raise InputError("two of the files to write have one name: give two different --languages, and another --left-out")
  for path in filter(None, (source, target, left_out)):
    if path.suffix in COMPRESSED:
      raise InputError(f"{path} is written as plain text, but would be read as compressed: name it otherwise")
    if path.exists():
      raise InputError(f"{path} exists already: choose another name, or delete it")
    if not path.parent.is_dir():
      raise InputError(f"the folder of {path} does not exist: make it, or choose another name")
    if not os.access(path.parent, os.W_OK):
      raise InputError(f"{path} cannot be written: choose a name in a folder that can be")
  return source, target, left_out
