"""`draw`: pictures, each by its name."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from transformer_jax.commands.experiment import add_config_arguments, config_of_new_run, print_help
from transformer_jax.commands.pictures import require_matplotlib, warn_of_missing_characters
from transformer_jax.commands.search import add_beam_arguments, beam_options, load
from transformer_jax.commands.workdir import add_workdir_arguments, open_run, run_to_restore
from transformer_jax.runtime.errors import InputError, one_line
from transformer_jax.runtime.files import write_atomically

if TYPE_CHECKING:
  from matplotlib.figure import Figure

  from transformer_jax.config import Config

DESCRIPTION = """\
Draws a picture: the model of a config, or the beam search for a sentence. `draw PICTURE --help` shows its flags.
"""

_ENDINGS = ("svg", "png", "pdf")


class _Picture(NamedTuple):
  """A picture by its name.

  Attributes:
    description: the help of its command.
    add_arguments: adds its flags, without --output.
    draw: makes the figure.
  """

  description: str
  add_arguments: Callable[[argparse.ArgumentParser], None]
  draw: "Callable[[argparse.Namespace], Figure]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
  names = parser.add_subparsers(dest="picture", metavar="PICTURE", required=True, title="pictures")
  for name, picture in _PICTURES.items():
    summary = picture.description.split(": ")[0].replace("\n", " ")
    command = names.add_parser(
      name, help=summary, description=picture.description, allow_abbrev=False, conflict_handler="resolve"
    )
    picture.add_arguments(command)
    command.add_argument("--output", metavar="FILE", help=f"the picture to write: .{', .'.join(_ENDINGS)}")
    command.set_defaults(parser=command)


def run(args: argparse.Namespace) -> None:
  """`draw`: pictures, each by its name."""
  if getattr(args, "help", False):
    print_help(args)
    return
  output = _output(args)
  figure = _PICTURES[args.picture].draw(args)
  from transformer_jax.inside import figures

  ending = output.suffix[1:]
  found, lacking = figures.files(figure, [ending])
  write_atomically(output, found[ending])
  print(one_line(output))
  if lacking:
    warn_of_missing_characters()


def _output(args: argparse.Namespace) -> Path:
  """The file to write.

  Raises:
    InputError: there is no such folder, or the file's name has another ending.
  """
  if not args.output:
    raise InputError(f"--output is missing: it names the picture to write; `{args.parser.prog} --help` tells more")
  output = Path(args.output).expanduser()
  if output.suffix[1:] not in _ENDINGS:
    raise InputError(f"--output is {args.output}, but must end in .{', .'.join(_ENDINGS)}")
  if output.is_dir() or not output.parent.is_dir() or not os.access(output.parent, os.W_OK):
    raise InputError(f"--output {args.output} cannot be written: give a file in a folder that exists")
  return output


def _add_model_arguments(parser: argparse.ArgumentParser) -> None:
  add_config_arguments(parser, "the first example")
  parser.add_argument("--workdir", metavar="DIR", help="draw the model of this run instead")
  parser.add_argument("--accept-edits", action="store_true", help="take the run's files as they are, edited or not")


def _draw_model(args: argparse.Namespace) -> "Figure":
  config, name = _config(args)
  from transformer_jax.inside import model_parts

  parts = model_parts.model_parts(config.model)
  require_matplotlib()
  from transformer_jax.inside import model_picture

  return model_picture.draw(parts, name)


def _config(args: argparse.Namespace) -> "tuple[Config, str]":
  """The config to draw, and its name."""
  from transformer_jax.config import flags

  if args.workdir is None:
    return config_of_new_run(args), flags.run_name(args.config)
  if args.config is not None or args.overrides:
    raise InputError("--workdir and --config exclude each other: a run has its own config")
  run = open_run(args)
  return run.config, one_line(run.path.name)


def _add_search_arguments(parser: argparse.ArgumentParser) -> None:
  add_workdir_arguments(parser)
  add_beam_arguments(parser)
  parser.add_argument("--sentence", required=True, metavar="TEXT", help="the sentence to translate")
  parser.add_argument(
    "--n-best", type=int, default=1, metavar="N", help="search until the N best are found (default 1)"
  )


def _draw_search(args: argparse.Namespace) -> "Figure":
  require_matplotlib()
  from transformer_jax.inside import search_picture

  translator = load([run_to_restore(args, "translate")], args)
  tree = translator.search_tree(args.sentence, n_best=args.n_best, **beam_options(args))
  return search_picture.draw(tree, args.sentence)


_PICTURES = {
  "model": _Picture(
    "Draws the model of a config as in Figure 1: each box has the shapes of its arrays and its parameters. --config "
    "and --config.KEY=VALUE are those of `train`.",
    _add_model_arguments,
    _draw_model,
  ),
  "search": _Picture(
    "Draws the beam search for a sentence as a tree: the hypotheses that are kept in each step, finished ones with "
    "their scores, the most probable of the pruned ones, and the best.",
    _add_search_arguments,
    _draw_search,
  ),
}
