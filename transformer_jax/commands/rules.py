"""The flags of the rules of cleaning, which `clean` and `prepare` share."""

import argparse
from typing import TYPE_CHECKING

from transformer_jax.runtime.errors import require_option

if TYPE_CHECKING:  # --help must not wait for this import
  from transformer_jax.data.cleaning import Rules
  from transformer_jax.data.text import TextPairs


def add_rule_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the flags."""
  add = parser.add_argument
  add("--unit", choices=["words", "characters"], default="words", help="the unit of lengths (default: words)")
  add("--min-length", type=int, default=1, metavar="N", help="the shortest side (default: 1)")
  add("--max-length", type=int, metavar="N", help="the longest side")
  add("--max-ratio", type=float, metavar="R", help="the longer side is less than R times as long as the other")
  add("--no-copies", action="store_true", help="leave out pairs whose sides are equal but for case and spaces")
  add(
    "--duplicates",
    choices=["pairs", "sources", "targets"],
    help="leave out pairs that have occurred before, or whose source or target has",
  )
  add("--scripts", nargs=2, metavar="S", help="the script of each side, such as Latin Hangul")
  add("--script-share", type=float, default=1.0, metavar="P", help="the least share of letters in it (default: 1)")
  add("--identify", action="store_true", help="leave out pairs in other languages than those of the corpus")


def rules_of(args: argparse.Namespace, languages: tuple[str, str]) -> "Rules":
  """The rules that are on, but for duplicates.

  Raises:
    InputError: a value is out of range, or has no effect.
  """
  from transformer_jax.data import cleaning

  share = args.script_share
  require_option("--script-share", share, bool(args.scripts) or share == 1, "left out without --scripts")
  counts = args.min_length > 1 or args.max_length is not None or args.max_ratio is not None
  left_out = "left out without --min-length, --max-length or --max-ratio"
  require_option("--unit", args.unit, args.unit == "words" or counts, left_out)
  return cleaning.Rules(
    unit=cleaning.Unit(args.unit),
    min_length=args.min_length,
    max_length=args.max_length,
    max_ratio=args.max_ratio,
    copies=not args.no_copies,
    scripts=tuple(args.scripts) if args.scripts else None,
    script_share=args.script_share,
    languages=languages if args.identify else None,
  )


def require_no_weights(args: argparse.Namespace, text: "TextPairs", place: str) -> None:
  """Raises InputError if --duplicates would leave out what a weight repeats; `place` names the corpora."""
  weighted = any(files.weight > 1 for files in text.files)
  fits = not (args.duplicates and weighted)
  require_option("--duplicates", args.duplicates, fits, f"left out with weights in {place}")
