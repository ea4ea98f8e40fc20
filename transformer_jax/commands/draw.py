"""Draws a picture: the model of a config, a formula of the paper, or what a trained model does with a sentence. `draw
PICTURE --help` shows its flags.
"""

import argparse
import inspect
import os
from pathlib import Path

from transformer_jax.commands import draw_config, draw_formula, draw_run, output_file
from transformer_jax.commands.pictures import require_matplotlib, warn_of_missing_characters
from transformer_jax.runtime.errors import InputError, one_line
from transformer_jax.runtime.wording import summary

_ENDINGS = ("svg", "png", "pdf")


def add_arguments(parser: argparse.ArgumentParser) -> None:
  names = parser.add_subparsers(dest="picture", metavar="PICTURE", required=True, title="pictures")
  for name, (add_its_arguments, draw) in _PICTURES.items():
    description = inspect.cleandoc(draw.__doc__ or "")
    command = names.add_parser(
      name, help=summary(description), description=description, allow_abbrev=False, conflict_handler="resolve"
    )
    add_its_arguments(command)
    command.add_argument("--output", metavar="FILE", help=f"the picture to write: .{', .'.join(_ENDINGS)}")
    command.set_defaults(parser=command)


def run(args: argparse.Namespace) -> None:
  output = _output(args)
  from transformer_jax.runtime.devices import require_devices

  require_devices()
  require_matplotlib()
  from transformer_jax.inside import figures

  _, draw = _PICTURES[args.picture]
  figure = draw(args)

  ending = output.suffix[1:]
  found, lacking = figures.files(figure, [ending])
  output_file.write(os.fspath(output), found[ending])
  print(one_line(output))
  if lacking:
    warn_of_missing_characters()


def _output(args: argparse.Namespace) -> Path:
  """The file to write.

  Raises:
    InputError: it cannot be written, or its name has another ending.
  """
  if not args.output:
    raise InputError(f"--output is missing: it names the picture to write; `{args.parser.prog} --help` tells more")
  output = output_file.local_path("--output", args.output)
  if output.suffix[1:] not in _ENDINGS:
    raise InputError(f"--output is {args.output}, but must end in .{', .'.join(_ENDINGS)}")
  output_file.check_writable("--output", os.fspath(output), ())
  return output


# Of each picture: the function that adds its flags, without --output, and the one that draws it; the docstring of the
# second is the help.
_PICTURES = {
  "model": (draw_config.add_model_arguments, draw_config.draw_model),
  "unrolled": (draw_config.add_model_arguments, draw_config.draw_unrolled),
  "positions": (draw_config.add_positions_arguments, draw_config.draw_positions),
  "schedule": (draw_config.add_schedule_arguments, draw_config.draw_schedule),
  "masks": (draw_formula.add_masks_arguments, draw_formula.draw_masks),
  "softmax": (draw_formula.add_softmax_arguments, draw_formula.draw_softmax),
  "smoothing": (draw_formula.add_smoothing_arguments, draw_formula.draw_smoothing),
  "self-attention": (draw_run.add_self_attention_arguments, draw_run.draw_self_attention),
  "search": (draw_run.add_search_arguments, draw_run.draw_search),
  "next": (draw_run.add_next_arguments, draw_run.draw_next),
}
