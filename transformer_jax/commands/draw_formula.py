"""The pictures of `draw` that show a formula of the paper and need no config."""

import argparse
import re
from typing import TYPE_CHECKING

from transformer_jax.runtime.errors import InputError, require_option

if TYPE_CHECKING:
  from matplotlib.figure import Figure

_MOST_D_K, _MOST_D_KS = 4096, 6
_MOST_TOKENS, _MOST_EPSILONS = 12, 4
_MOST_ROW = 12  # tokens of a row that have room for their names


def add_masks_arguments(parser: argparse.ArgumentParser) -> None:
  parser.add_argument(
    "--pairs",
    nargs="+",
    default=["4-3", "2-4"],
    metavar="M-N",
    help="the tokens of the source and the target of each sentence pair (default: 4-3 2-4)",
  )
  parser.add_argument("--row-length", type=int, default=8, metavar="N", help="the tokens of each side (default 8)")
  parser.add_argument("--window", type=int, default=1, metavar="R", help="the radius of the window (default 1)")


def draw_masks(args: argparse.Namespace) -> "Figure":
  """Draws the masks of a packed row: padding, segments, causal and window, and the masks of attention that they
  make.
  """
  require_option("--row-length", args.row_length, 2 <= args.row_length <= _MOST_ROW, f"from 2 to {_MOST_ROW}")
  require_option("--window", args.window, 0 < args.window <= _MOST_ROW, f"from 1 to {_MOST_ROW}")
  pairs = [_pair(text) for text in args.pairs]
  from transformer_jax.inside import masks_picture

  return masks_picture.draw(masks_picture.masks(pairs, args.row_length, args.window))


def _pair(text: str) -> tuple[int, int]:
  """The numbers of `4-3`.

  Raises:
    InputError: the text is not of this form.
  """
  found = re.fullmatch(r"([1-9][0-9]?)-([1-9][0-9]?)", text)
  if found is None:
    raise InputError(f"--pairs has {text!r}, but a pair is written as 4-3: 4 tokens of the source, 3 of the target")
  return int(found[1]), int(found[2])


def add_softmax_arguments(parser: argparse.ArgumentParser) -> None:
  parser.add_argument(
    "--d-k", type=int, nargs="+", default=[4, 64, 512], metavar="N", help="widths of a head (default: 4 64 512)"
  )
  parser.add_argument("--seed", type=int, default=0, metavar="N", help="the seed of the random numbers (default 0)")


def draw_softmax(args: argparse.Namespace) -> "Figure":
  """Draws how the softmax saturates: the largest weight of random queries with the scale 1 / sqrt(d_k) and without,
  and the weights of one query.
  """
  for value in args.d_k:
    require_option("--d-k", value, 1 <= value <= _MOST_D_K, f"from 1 to {_MOST_D_K}")
  require_option("--d-k", f"{len(args.d_k)} numbers", len(args.d_k) <= _MOST_D_KS, f"at most {_MOST_D_KS} numbers")
  require_option("--seed", args.seed, args.seed >= 0, "0 or more")
  from transformer_jax.inside import softmax_picture

  return softmax_picture.draw(args.d_k, seed=args.seed)


def add_smoothing_arguments(parser: argparse.ArgumentParser) -> None:
  parser.add_argument(
    "--label-smoothing",
    type=float,
    nargs="+",
    default=[0.0, 0.1, 0.3],
    metavar="E",
    help="values of epsilon (default: 0 0.1 0.3)",
  )
  parser.add_argument("--vocab-size", type=int, default=6, metavar="V", help="the number of tokens (default 6)")


def draw_smoothing(args: argparse.Namespace) -> "Figure":
  """Draws label smoothing (§5.4): the targets of a token, and the loss by the probability of the right token."""
  given = args.label_smoothing
  for value in given:
    require_option("--label-smoothing", value, 0 <= value < 1, "at least 0 and below 1")
  fits = len(given) <= _MOST_EPSILONS
  require_option("--label-smoothing", f"{len(given)} numbers", fits, f"at most {_MOST_EPSILONS} numbers")
  valid = 2 <= args.vocab_size <= _MOST_TOKENS
  require_option("--vocab-size", args.vocab_size, valid, f"from 2 to {_MOST_TOKENS}, so that each has a bar")
  from transformer_jax.inside import smoothing_picture

  return smoothing_picture.draw(args.vocab_size, given)
