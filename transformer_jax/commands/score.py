"""Scores a file of translations, of whatever origin, against a reference: prints the report of evaluate --report."""

import argparse

from transformer_jax.commands import scoring


def add_arguments(parser: argparse.ArgumentParser) -> None:
  parser.add_argument("--hypotheses", required=True, metavar="FILE", help="translations, one per line")
  scoring.add_score_arguments(parser, "13a", "no")
  parser.set_defaults(tokenize="13a", lowercase=False)
  parser.add_argument("--source", metavar="FILE", help="what was translated, for the report only")
  parser.add_argument(
    "--languages", nargs=2, metavar=("FROM", "TO"), help="as en de, for which the paper has its own BLEU"
  )


def run(args: argparse.Namespace) -> None:
  scoring.check_scores(args)
  translations, reference = scoring.read_texts(args.hypotheses, args.reference)
  scoring.warn_of_scores(args.hypotheses, translations.lines)
  source, other = (scoring.read_as_many(path, args.reference, reference) for path in (args.source, args.compare))
  languages = tuple(args.languages) if args.languages else None
  scoring.print_report(args, translations, reference, {"source": source, "other": other, "languages": languages})
