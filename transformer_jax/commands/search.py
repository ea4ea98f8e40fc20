"""The flags and functions of commands that translate: the run and the search."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from transformer_jax.commands.workdir import add_workdir_arguments
from transformer_jax.runtime.compilation_cache import use_compilation_cache

if TYPE_CHECKING:
  from transformer_jax.decoding.translator import Translator
  from transformer_jax.runs.run import Run


def load(runs: "Sequence[Run]", args: argparse.Namespace) -> "Translator":
  """The translator of a run, or the ensemble of several, with the checkpoint of --step."""
  from transformer_jax.decoding.translator import Translator

  use_compilation_cache()
  return Translator.load(runs if len(runs) > 1 else runs[0], step=args.step)


def beam_options(args: argparse.Namespace) -> dict[str, Any]:
  return {name: getattr(args, name) for name in ("beam_size", "length_penalty", "patience")}


def search_options(args: argparse.Namespace) -> dict[str, Any]:
  return beam_options(args) | {"batch_size": args.batch_size}


def add_search_arguments(parser: argparse.ArgumentParser, *, ensemble: bool = False) -> None:
  """Adds the flags of the run and of the search; `ensemble`: --workdir may be repeated."""
  add_workdir_arguments(parser, ensemble=ensemble)
  add_beam_arguments(parser)
  parser.add_argument("--batch-size", type=int, metavar="N", help="sentences computed together on a device")


def add_beam_arguments(parser: argparse.ArgumentParser) -> None:
  parser.add_argument(
    "--beam-size", type=int, metavar="N", help="hypotheses kept (default: the run's); 1 is greedy search"
  )
  parser.add_argument(
    "--length-penalty", type=float, metavar="A", help="the exponent alpha of the length penalty (default: the run's)"
  )
  parser.add_argument(
    "--patience",
    type=float,
    metavar="P",
    help="a search ends when P times the beam size of hypotheses have ended; 0: when nothing better is possible "
    "(default: the run's)",
  )
