"""`draw`: pictures, each by its name."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from transformer_jax.commands import draw_config, draw_formula, draw_run
from transformer_jax.commands.pictures import require_matplotlib, warn_of_missing_characters
from transformer_jax.runtime.errors import InputError, one_line
from transformer_jax.runtime.files import write_atomically

if TYPE_CHECKING:
  from matplotlib.figure import Figure

DESCRIPTION = """\
Draws a picture: the model of a config, a formula of the paper, or what a trained model does with a sentence.
`draw PICTURE --help` shows its flags.
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
  output = _output(args)
  require_matplotlib()
  from transformer_jax.inside import figures

  figure = _PICTURES[args.picture].draw(args)

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


_PICTURES = {
  "model": _Picture(
    "Draws the model of a config as in Figure 1: each box has the shapes of its arrays and its parameters. --config "
    "and --config.KEY=VALUE are those of `train`.",
    draw_config.add_model_arguments,
    draw_config.draw_model,
  ),
  "unrolled": _Picture(
    "Draws a recurrent model unrolled in time: each state, input and output of three steps, and what it is computed "
    "from.",
    draw_config.add_model_arguments,
    draw_config.draw_unrolled,
  ),
  "positions": _Picture(
    "Draws the positional encodings of §3.5: all numbers as heat maps, some dimensions as waves, and the distances "
    "between positions.",
    draw_config.add_positions_arguments,
    draw_config.draw_positions,
  ),
  "schedule": _Picture(
    "Draws the learning rate of §5.3: that of a config, and others with other numbers of warmup steps.",
    draw_config.add_schedule_arguments,
    draw_config.draw_schedule,
  ),
  "masks": _Picture(
    "Draws the masks of a packed row: padding, segments, causal and window, and the masks of attention that they make.",
    draw_formula.add_masks_arguments,
    draw_formula.draw_masks,
  ),
  "softmax": _Picture(
    "Draws how the softmax saturates: the largest weight of random queries with the scale 1 / sqrt(d_k) and without, "
    "and the weights of one query.",
    draw_formula.add_softmax_arguments,
    draw_formula.draw_softmax,
  ),
  "smoothing": _Picture(
    "Draws label smoothing (§5.4): the targets of a token, and the loss by the probability of the right token.",
    draw_formula.add_smoothing_arguments,
    draw_formula.draw_smoothing,
  ),
  "self-attention": _Picture(
    "Draws one head of self-attention with its numbers: x, q, k, v, scores, weights and z, for a sentence and a head "
    "of a trained model, or without --workdir for a toy of width 4.",
    draw_run.add_self_attention_arguments,
    draw_run.draw_self_attention,
  ),
  "search": _Picture(
    "Draws the beam search for a sentence as a tree: the hypotheses that are kept in each step, finished ones with "
    "their scores, the most probable of the pruned ones, and the best.",
    draw_run.add_search_arguments,
    draw_run.draw_search,
  ),
  "next": _Picture(
    "Draws the probabilities of the next token as bars: after the beginning of a translation, or of a text for a "
    "language model.",
    draw_run.add_next_arguments,
    draw_run.draw_next,
  ),
}
