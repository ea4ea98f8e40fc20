"""The flags and functions of commands that translate: the run and the search."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from transformer_jax.commands.workdir import add_workdir_arguments
from transformer_jax.runtime.errors import InputError

if TYPE_CHECKING:
  from transformer_jax.config import DecodeConfig
  from transformer_jax.decoding.sampling import SamplingOptions
  from transformer_jax.decoding.translator import Translator
  from transformer_jax.runs.run import Run


def load(runs: "Sequence[Run]", args: argparse.Namespace) -> "Translator":
  """The translator of a run, or the ensemble of several, with the checkpoint of --step."""
  from transformer_jax.runtime.progress import doing

  with doing("loading the libraries that translate"):
    from transformer_jax.decoding.translator import Translator

  return Translator.load(runs, step=args.step)


def beam_options(args: argparse.Namespace) -> dict[str, Any]:
  return {name: getattr(args, name) for name in ("beam_size", "length_penalty", "patience")}


def chosen_beam(args: argparse.Namespace, decode: "DecodeConfig") -> dict[str, Any]:
  """`beam_options` with the run's value in place of a flag that is not given."""
  return {name: getattr(decode, name) if value is None else value for name, value in beam_options(args).items()}


def search_options(args: argparse.Namespace) -> dict[str, Any]:
  return beam_options(args) | {"batch_size": args.batch_size}


def add_search_arguments(parser: argparse.ArgumentParser, *, ensemble: bool = False) -> None:
  """Adds the flags of the run and of the search; `ensemble`: --workdir may be repeated."""
  add_workdir_arguments(parser, ensemble=ensemble)
  add_beam_arguments(parser)
  parser.add_argument(
    "--batch-size",
    type=int,
    metavar="N",
    help="sentences computed together on a device (default: by length and memory; serve on a CPU: 4)",
  )


def add_sampling_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the flags of random choices."""
  add = parser.add_argument
  add(
    "--temperature",
    type=float,
    default=1.0,
    metavar="T",
    help="below 1 favours probable tokens; 0 always takes the most probable (default 1)",
  )
  add("--top-k", type=int, default=0, metavar="K", help="sample from the K most probable tokens (default: all)")
  add(
    "--top-p",
    type=float,
    default=1.0,
    metavar="P",
    help="sample from the smallest set of tokens that has probability P (default 1)",
  )
  add("--seed", type=int, default=0, metavar="N", help="the seed of the random choices (default 0)")


def require_no_sampling(args: argparse.Namespace, hint: str) -> None:
  """Raises InputError if a flag of random choices is given in vain; `hint` says what to do."""
  for name in ("temperature", "top_k", "top_p", "seed"):
    if getattr(args, name) != args.parser.get_default(name):
      raise InputError(
        f"--{name.replace('_', '-')} is for random choices, but this is a search: {hint}, or leave it out"
      )


def sampling_options(args: argparse.Namespace) -> "SamplingOptions":
  from transformer_jax.decoding.sampling import SamplingOptions

  return SamplingOptions(args.temperature, args.top_k, args.top_p)


def add_beam_arguments(parser: argparse.ArgumentParser) -> None:
  add = parser.add_argument
  add("--beam-size", type=int, metavar="N", help="hypotheses kept (default: the run's); 1 is greedy search")
  add("--length-penalty", type=float, metavar="A", help="the exponent alpha of the length penalty (default: the run's)")
  add(
    "--patience",
    type=float,
    metavar="P",
    help="a search ends when P times the beam size of hypotheses have ended; 0: when nothing better is possible "
    "(default: the run's)",
  )
