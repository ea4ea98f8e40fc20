"""The flags and functions of the commands that score translations."""

import argparse
import json
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from transformer_jax.evaluation.report import Text

_FEW = 10  # sentences, below which a bootstrap draws nearly the same ones each time
_SCORED = re.compile(r"-?\d+\.\d{6}\t")


def add_score_arguments(parser: argparse.ArgumentParser, tokenize: str, lowercase: str) -> None:
  """Adds the flags of scoring; `tokenize` and `lowercase` describe the defaults, the flags' own default is None."""
  parser.add_argument("--reference", required=True, metavar="FILE", help="reference translations, one per line")
  parser.add_argument(
    "--tokenize",
    metavar="T",
    help=f"sacreBLEU's: 13a, none for tokenised text, char, zh, ... (default: {tokenize})",
  )
  parser.add_argument(
    "--lowercase",
    action=argparse.BooleanOptionalAction,
    help=f"ignore case (default: {lowercase})",
  )
  parser.add_argument(
    "--compare", metavar="FILE", help="other translations: the report tells whether their scores differ by chance only"
  )
  parser.add_argument("--json", action="store_true", help="print one JSON object")


def check_scores(args: argparse.Namespace) -> None:
  """Checks the flags of scoring, before the translations are made.

  Raises:
    InputError: there is no such tokenisation, or the seed of the comparison is none that sacreBLEU draws with.
  """
  from transformer_jax.evaluation import bootstrap, scores

  if args.tokenize is not None:
    scores.check_tokenization(args.tokenize)
  if args.compare:
    bootstrap.require_seed()


def print_report(args: argparse.Namespace, translations: "Text", reference: "Text", known: dict[str, Any]) -> None:
  from transformer_jax.evaluation import report
  from transformer_jax.runtime.progress import say
  from transformer_jax.runtime.wording import counted

  if args.compare:
    warn_of_scores(args.compare, known["other"].lines)
  if args.compare and (count := len(reference.lines)) < _FEW:
    say(f"{counted(count, 'sentences')} only: p says nothing below {_FEW}")
  found = report.build_report(translations, reference, tokenize=args.tokenize, lowercase=args.lowercase, **known)
  print(json.dumps(found) if args.json else report.text(found))


def warn_of_scores(path: str, lines: Sequence[str]) -> None:
  """Says that each line has a score in front, which would be scored as a part of the translation."""
  from transformer_jax.runtime.progress import say

  if lines and all(map(_SCORED.match, lines)):
    say(f"each line of {path} begins with a score and a tab, as `translate --scores` writes: `cut -f 2-` removes them")


def named(path: str | None, lines: Sequence[str]) -> "Text":
  from transformer_jax.evaluation.report import Text

  return Text(path and os.path.basename(path), lines)


def read_texts(path: str, reference: str) -> "tuple[Text, Text]":
  """Reads two files with the same number of lines; tells how many references alone are empty."""
  from transformer_jax.data.text import lines_of, zip_lines
  from transformer_jax.runtime.progress import say
  from transformer_jax.runtime.wording import counted

  pairs = list(zip_lines(lines_of(path), lines_of(reference), path, reference))
  if empty := sum(bool(line.strip()) and not expected.strip() for line, expected in pairs):
    say(
      f"{reference} has {counted(empty, 'empty lines')} where {path} has text: "
      "what is translated there is wrong for BLEU and TER, and does not count for chrF2"
    )
  return named(path, [line for line, _ in pairs]), named(reference, [line for _, line in pairs])


def read_as_many(path: str | None, name: str, text: "Text") -> "Text | None":
  """Reads a file that must have as many lines as `text`; `text` was read from `name`, perhaps a pipe."""
  from transformer_jax.data.text import lines_of, zip_lines

  if not path:
    return None
  pairs = zip_lines(lines_of(path), iter(text.lines), path, name)
  return named(path, [line for line, _ in pairs])
