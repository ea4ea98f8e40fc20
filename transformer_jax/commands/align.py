"""Aligns the words of sentence pairs by a model's cross-attention: prints a line for each pair in Pharaoh's format,
such as 0-0 2-1, where i-j links source word i and target word j, from 0. Words are what spaces separate. Each target
token is linked to the source token with the largest mean weight over the heads of a layer (Garg et al. 2019). With
--gold the alignment error rate (Och and Ney 2003) goes to standard error.
"""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from transformer_jax.commands.search import load
from transformer_jax.commands.workdir import add_pairs, add_workdir_arguments, run_to_restore
from transformer_jax.runtime.errors import InputError, require_option
from transformer_jax.runtime.wording import counted

if TYPE_CHECKING:
  from transformer_jax.inside.alignment import Gold
  from transformer_jax.runs.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
  add_workdir_arguments(parser)
  add_pairs(parser)
  add = parser.add_argument
  add("--layer", type=int, metavar="L", help="the layer, from 1 (default: the last but one, if there are several)")
  add("--gold", metavar="FILE", help="alignments by hand, a line for each pair: 0-1 is sure, 0p1 or 0?1 is possible")


def run(args: argparse.Namespace) -> None:
  from transformer_jax.data.pipeline import read_text_pairs
  from transformer_jax.decoding.attention import CROSS
  from transformer_jax.inside import alignment
  from transformer_jax.runtime.progress import say

  gold = _read_gold(args.gold) if args.gold else None
  if gold is not None and not any(each.sure for each in gold):
    raise InputError(f"{args.gold} has no sure link, such as 0-1, so there is nothing to compare with")
  opened = run_to_restore(args.workdir, args, "translate")
  data = opened.config.data
  pairs = read_text_pairs(data, args.data)
  if gold is not None:
    _require_gold_of_pairs(args, gold, pairs, opened)
  translator, found = load([opened], args), []
  for number, (source, target) in enumerate(pairs, 1):
    if not translator.fits([(source, target)]):
      say(f"pair {number} of {args.data} is too long for the model, so its line is empty")
      found.append([])
      print()
      continue
    try:
      attention = translator.attention(source, target)
    except InputError as error:
      raise InputError(f"pair {number} of {args.data}: {error}") from error
    layers = len(attention.weights[CROSS])
    require_option("--layer", args.layer, args.layer is None or 1 <= args.layer <= layers, f"from 1 to {layers}")
    of_source, first = alignment.source_words(opened.tokenizer.source, data.tags, source)
    of_target = opened.tokenizer.target.words(target)
    found.append(alignment.links(attention, (args.layer or max(1, layers - 1)) - 1, of_source, of_target, first))
    print(alignment.pharaoh(found[-1]))
  if gold is not None:
    rate = alignment.error_rate(found, gold)
    say(
      f"alignment error rate {rate.error_rate:.3f} (95% interval {rate.low:.3f} to {rate.high:.3f}), "
      f"precision {rate.precision:.3f}, recall {rate.recall:.3f}, {counted(len(found), 'pairs')}"
    )


def _require_gold_of_pairs(
  args: argparse.Namespace, gold: "list[Gold]", pairs: Sequence[tuple[str, str]], opened: "Run"
) -> None:
  """Raises InputError unless there is a line for each pair, with links of its words."""
  from transformer_jax.inside import alignment

  if len(gold) != len(pairs):
    found = counted(len(gold), "lines"), counted(len(pairs), "pairs")
    raise InputError(f"{args.gold} has {found[0]}, but {args.data} has {found[1]}: give one for each")
  for number, (by_hand, (source, target)) in enumerate(zip(gold, pairs, strict=True), 1):
    words = source[len(alignment.language_of(opened.tokenizer.source, opened.config.data.tags, source)) :]
    alignment.require_words(by_hand, words, target, f"{args.gold}, line {number},")


def _read_gold(name: str) -> "list[Gold]":
  from transformer_jax.data.text import lines_of
  from transformer_jax.inside.alignment import parse_gold

  return [parse_gold(line, f"{name}, line {number},") for number, line in enumerate(lines_of(name), 1)]
