"""`score`: translations that exist already."""

import argparse
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from transformer_jax.evaluation.report import Text

DESCRIPTION = (
  "Scores a file of translations, of whatever origin, against a reference: prints the report of evaluate --report."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
  parser.add_argument("--hypotheses", required=True, metavar="FILE", help="translations, one a line")
  add_score_arguments(parser)
  parser.add_argument("--source", metavar="FILE", help="what was translated, for the report only")
  parser.add_argument(
    "--languages", nargs=2, metavar=("FROM", "TO"), help="as en de, for which the paper has its own BLEU"
  )


def add_score_arguments(parser: argparse.ArgumentParser) -> None:
  parser.add_argument("--reference", required=True, metavar="FILE", help="right translations, one a line")
  parser.add_argument(
    "--tokenize", default="13a", metavar="T", help="sacreBLEU's: 13a (default), none for tokenised text, char, zh, ..."
  )
  parser.add_argument("--lowercase", action="store_true", help="letters of both cases are equal")
  parser.add_argument(
    "--compare", metavar="FILE", help="other translations: the report tells whether their scores differ by chance only"
  )
  parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> None:
  """`score`: translations that exist already."""
  from transformer_jax.evaluation import scores

  scores.check_tokenization(args.tokenize)
  translations, reference = read_texts(args.hypotheses, args.reference)
  source = read_texts(args.source, args.reference)[0] if args.source else None
  languages = tuple(args.languages) if args.languages else None
  known = {"source": source, "other": read_other(args), "languages": languages}
  print_report(args, translations, reference, known)


def print_report(args: argparse.Namespace, translations: "Text", reference: "Text", known: dict[str, Any]) -> None:
  from transformer_jax.evaluation import report

  found = report.whole(translations, reference, tokenize=args.tokenize, lowercase=args.lowercase, **known)
  print(json.dumps(found) if args.json else report.text(found))


def named(path: str | None, lines: Sequence[str]) -> "Text":
  from transformer_jax.evaluation.report import Text

  return Text(path and os.path.basename(path), lines)


def read_texts(path: str, reference: str) -> "tuple[Text, Text]":
  """Two files, of as many lines each."""
  from etils import epath

  from transformer_jax.data.text import lines_of, zip_lines

  first, second = (lines_of(epath.Path(name).expanduser()) for name in (path, reference))
  pairs = list(zip_lines(first, second, path, reference))
  return named(path, [line for line, _ in pairs]), named(reference, [line for _, line in pairs])


def read_other(args: argparse.Namespace) -> "Text | None":
  return read_texts(args.compare, args.reference)[0] if args.compare else None
