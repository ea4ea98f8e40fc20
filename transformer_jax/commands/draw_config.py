"""The pictures of `draw` that show a config, or the config of a run."""

import argparse
from typing import TYPE_CHECKING

from transformer_jax.commands.experiment import add_config_arguments, config_of_new_run
from transformer_jax.commands.workdir import add_accept_edits, open_run
from transformer_jax.runtime.errors import InputError, one_line, require_option

if TYPE_CHECKING:
  from matplotlib.figure import Figure

  from transformer_jax.config import Config

_MOST = 10_000  # positions and dimensions of a picture
_MOST_STEPS = 2**31 - 1  # as a step is an int32
_MOST_WARMUPS = 7  # lines beside that of the config which differ in style


def _add_config_or_run(parser: argparse.ArgumentParser, what: str) -> None:
  add_config_arguments(parser, "the first example")
  parser.add_argument("--workdir", metavar="DIR", help=f"draw {what} of this run instead")
  add_accept_edits(parser)


def _config(args: argparse.Namespace) -> "tuple[Config, str]":
  """The config to draw, and its name."""
  from transformer_jax import registry
  from transformer_jax.config import flags

  if args.workdir is None:
    config, name = config_of_new_run(args), flags.run_name(args.config)
    family = registry.name_of(config.model)  # `rnn.py` alone is Bahdanau's model
    plain = ":" in (args.config or "") or family in (registry.FIRST, name)
    return config, name if plain else f"{name}: {family}"
  if args.config is not None or args.overrides:
    raise InputError("--workdir and --config exclude each other: a run has its own config")
  run = open_run(args)
  return run.config, one_line(run.path.name)


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
  _add_config_or_run(parser, "the model")


def draw_model(args: argparse.Namespace) -> "Figure":
  """Draws the model of a config as in Figure 1: each box has the shapes of its arrays and its parameters. --config
  and --config.KEY=VALUE are those of `train`.
  """
  config, name = _config(args)
  from transformer_jax.inside import model_parts, model_picture

  return model_picture.draw(model_parts.model_parts(config.model), name)


def draw_unrolled(args: argparse.Namespace) -> "Figure":
  """Draws a recurrent model unrolled in time: each state, input and output of three steps, and what it is computed
  from.
  """
  config, name = _config(args)
  from transformer_jax.inside import unrolled, unrolled_picture

  return unrolled_picture.draw(unrolled.unrolled(config.model), name)


def add_positions_arguments(parser: argparse.ArgumentParser) -> None:
  _add_config_or_run(parser, "the encodings")
  parser.add_argument("--d-model", type=int, metavar="N", help="the width of an encoding (default: the config's)")
  parser.add_argument("--length", type=int, default=100, metavar="N", help="the number of positions (default 100)")


def draw_positions(args: argparse.Namespace) -> "Figure":
  """Draws the positional encodings of §3.5: all numbers as heat maps, some dimensions as waves, and the distances
  between positions.
  """
  require_option("--length", args.length, 2 <= args.length <= _MOST, f"from 2 to {_MOST}")
  d_model = _width_of_sinusoids(args) if args.d_model is None else args.d_model
  require_option("--d-model", d_model, 2 <= d_model <= _MOST and d_model % 2 == 0, f"even, from 2 to {_MOST}")
  if args.d_model is not None and (args.config or args.workdir or args.overrides):
    raise InputError("--d-model stands for a whole config: leave out --config and --workdir, or --d-model")
  from transformer_jax.inside import positions_picture

  return positions_picture.draw(args.length, d_model)


def _width_of_sinusoids(args: argparse.Namespace) -> int:
  """d_model of the config.

  Raises:
    InputError: the model has no sinusoids.
  """
  from transformer_jax import registry
  from transformer_jax.model.config import ModelConfig

  model = _config(args)[0].model
  if not isinstance(model, ModelConfig):
    raise InputError(
      f"config.model.family is {registry.name_of(model)}, which has no sinusoids: take a config of the family "
      f"{registry.FIRST}, or give --d-model alone"
    )
  if model.learned_positions:
    raise InputError("config.model.learned_positions is True, so the model has no sinusoids: give --d-model alone")
  return model.d_model


def add_schedule_arguments(parser: argparse.ArgumentParser) -> None:
  _add_config_or_run(parser, "the learning rate")
  parser.add_argument(
    "--warmup",
    type=int,
    nargs="+",
    metavar="N",
    help="the other numbers of warmup steps (default: half and twice that of the config)",
  )
  parser.add_argument("--steps", type=int, metavar="N", help="the last step (default: five times the warmup steps)")


def draw_schedule(args: argparse.Namespace) -> "Figure":
  """Draws the learning rate of §5.3: that of a config, and others with other numbers of warmup steps."""
  from transformer_jax.config import Schedule

  given = args.warmup or []
  for value in given:
    require_option("--warmup", value, 0 < value <= _MOST_STEPS, f"from 1 to {_MOST_STEPS:,}")
  require_option("--warmup", f"{len(given)} numbers", len(given) <= _MOST_WARMUPS, f"at most {_MOST_WARMUPS} numbers")
  fits = args.steps is None or 1 < args.steps <= _MOST_STEPS
  require_option("--steps", args.steps, fits, f"from 2 to {_MOST_STEPS:,}")
  config, _ = _config(args)
  d_model, train = config.model.d_model, config.train
  if train.schedule is not Schedule.INVERSE_SQUARE_ROOT:
    raise InputError(f"config.train.schedule is {train.schedule.value}, but the picture is that of inverse-square-root")
  others = [max(1, train.warmup_steps // 2), 2 * train.warmup_steps] if args.warmup is None else args.warmup
  from transformer_jax.inside import schedule_picture

  warmups = [train.warmup_steps, *others]
  return schedule_picture.draw(d_model, warmups, args.steps or 5 * train.warmup_steps, train.peak_learning_rate)
