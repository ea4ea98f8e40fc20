"""The pictures of `draw` that show what a trained model does with a sentence."""

import argparse
from typing import TYPE_CHECKING

from transformer_jax.commands.line_warnings import warn_of_language
from transformer_jax.commands.search import add_beam_arguments, beam_options, chosen_beam, load
from transformer_jax.commands.workdir import add_workdir_arguments, open_run, run_to_restore
from transformer_jax.runtime.errors import InputError, require_option
from transformer_jax.runtime.texts import require_utf8

if TYPE_CHECKING:
  from matplotlib.figure import Figure

  from transformer_jax.decoding.next_token import NextToken

_MOST_BARS = 40


def add_search_arguments(parser: argparse.ArgumentParser) -> None:
  add_workdir_arguments(parser)
  add_beam_arguments(parser)
  parser.add_argument("--sentence", required=True, metavar="TEXT", help="the sentence to translate")
  parser.add_argument(
    "--n-best", type=int, default=1, metavar="N", help="search until the N best are found (default 1)"
  )


def draw_search(args: argparse.Namespace) -> "Figure":
  """Draws the beam search for a sentence as a tree: the hypotheses that are kept in each step, finished ones with
  their scores, the most probable of the pruned ones, and the best.
  """
  from transformer_jax.inside import search_picture

  require_utf8("--sentence", args.sentence)
  run, most = run_to_restore(args.workdir, args, "translate"), search_picture.MOST_DRAWN
  if chosen_beam(args, run.config.decode)["beam_size"] > most:
    raise InputError(f"the picture has room for at most {most} hypotheses in the beam: give --beam-size {most} or less")
  warn_of_language(run, args.sentence)
  translator = load([run], args)
  tree = translator.search_tree(args.sentence, n_best=args.n_best, **beam_options(args))
  return search_picture.draw(tree, args.sentence)


def add_next_arguments(parser: argparse.ArgumentParser) -> None:
  add_workdir_arguments(parser)
  add = parser.add_argument
  add("--sentence", metavar="TEXT", help="the sentence to translate; only for a model that translates")
  add("--prefix", default="", metavar="TEXT", help="the beginning of the translation or of the text (default: none)")
  add("--top", type=int, default=10, metavar="N", help="the number of tokens that have a bar (default 10)")


def draw_next(args: argparse.Namespace) -> "Figure":
  """Draws the probabilities of the next token as bars: after the beginning of a translation, or of a text for a
  language model.
  """
  require_option("--top", args.top, 1 <= args.top <= _MOST_BARS, f"from 1 to {_MOST_BARS}")
  from transformer_jax.inside import next_picture

  return next_picture.draw(_next_token(args), args.top)


def _next_token(args: argparse.Namespace) -> "NextToken":
  """The probabilities of the next token, for a model that translates or a language model."""
  from transformer_jax import registry

  for flag in ("sentence", "prefix"):
    require_utf8(f"--{flag}", getattr(args, flag))
  model = open_run(args).config.model
  if not model.translates and registry.command_of(model) == "generate":
    if args.sentence is not None:
      raise InputError("--sentence is for a model that translates: give the beginning of the text with --prefix")
    from transformer_jax.decoding.generator import Generator

    return Generator.load(run_to_restore(args.workdir, args, "generate"), step=args.step).next_token(args.prefix)
  run = run_to_restore(args.workdir, args, "translate")
  if args.sentence is None:
    raise InputError("--sentence is missing: it is what the model translates")
  warn_of_language(run, args.sentence)
  return load([run], args).next_token(args.sentence, args.prefix)


def add_self_attention_arguments(parser: argparse.ArgumentParser) -> None:
  add_workdir_arguments(parser, required=False)
  add = parser.add_argument
  add("--sentence", metavar="TEXT", help="what the encoder reads; with --workdir")
  add("--layer", type=int, metavar="L", help="the layer of the encoder, from 1 (default: the last)")
  add("--head", type=int, metavar="H", help="its head, from 1 (default 1)")
  add("--word", type=int, metavar="N", help="the number of the token to follow, from 1 (default: in the middle)")


def draw_self_attention(args: argparse.Namespace) -> "Figure":
  """Draws one head of self-attention with its numbers: x, q, k, v, scores, weights and z, for a sentence and a head
  of a trained model, or without --workdir for a toy of width 4.
  """
  given = [name for name in ("sentence", "layer", "head") if getattr(args, name) is not None]
  given += ["step"] * (args.step != "last") + ["accept-edits"] * args.accept_edits
  if args.workdir is None and given:
    raise InputError(f"--{given[0]} is for a trained model: give its run with --workdir, or leave it out")
  if args.workdir is not None and args.sentence is None:
    raise InputError("--sentence is missing: it is what the encoder reads")
  from transformer_jax.inside import head_picture, head_steps

  require_utf8("--sentence", args.sentence)
  if args.workdir is None:
    steps = head_steps.toy()
  else:
    run = run_to_restore(args.workdir, args, "translate")
    warn_of_language(run, args.sentence)
    steps = head_steps.of_model(
      run.model(step=args.step), args.sentence, args.layer, 1 if args.head is None else args.head
    )
  return head_picture.draw(steps, args.word)
