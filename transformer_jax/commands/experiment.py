"""The flags --config and --config.KEY, which `train`, `plan`, `prepare` and pictures of `draw` share, and --help."""

import argparse

from transformer_jax.commands.workdir import open_run
from transformer_jax.config import Config, flags, serialization
from transformer_jax.config.help_text import help_text
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.files import expanded
from transformer_jax.runtime.progress import say
from transformer_jax.runtime.values import JsonObject


def add_config_arguments(parser: argparse.ArgumentParser, default: str) -> None:
  """Adds --config, and a --help that also shows the keys (`print_help`); flags `--config.KEY` go to `args.overrides`.

  Args:
    parser: the parser of the command.
    default: the description of the config without --config.
  """
  parser.add_argument("-h", "--help", action="store_true", help="show this, and each key with its value, and exit")
  parser.add_argument(
    "--config",
    metavar="FILE[:ARGUMENT]",
    help="a config file, which is a program in Python, or the name of one that comes with the package, as in "
    f"--config=multi30k (default: {default}); --config.KEY=VALUE changes a key",
  )


def read_keys(args: argparse.Namespace) -> JsonObject:
  """`flags.read_keys`, but a mistake in the config file comes first: an unknown key may be of what it cannot import."""
  try:
    return flags.read_keys(args.overrides)
  except InputError:
    if args.config:
      flags.read_config(args.config, {})
    raise


def print_help(args: argparse.Namespace) -> None:
  """Prints the flags of a command, and each key with its value by the config file, or the run, and the flags."""
  keys = read_keys(args)
  if begun := _config_of_run(args):
    config, given = serialization.changed(begun, keys), f"the run in {args.workdir}"
  else:
    config, given = flags.read_config(args.config, keys), args.config or f"configs/{flags.DEFAULT}"
  print(f"{args.parser.format_help()}\nkeys, with the values that {given} and the flags give them:")
  print(help_text(config))


def _config_of_run(args: argparse.Namespace) -> Config | None:
  """The config of the run in --workdir; None if another is given, or there is no run."""
  workdir = getattr(args, "workdir", None)
  if not workdir or args.config:
    return None
  from transformer_jax.runs import run_folder

  is_run = (run_folder.folder_of(workdir) / run_folder.CONFIG).exists()
  return open_run(args).config if is_run else None


def read_config(args: argparse.Namespace) -> Config:
  """The config of --config and the keys; prints the path of the config file if the user did not give it."""
  config = flags.read_config(args.config, read_keys(args))
  path = flags.find_file(args.config)
  if args.config is None:
    say(f"no --config is given; the first example is taken:\n  {path}")
  elif path != expanded(args.config.partition(":")[0]):
    say(f"--config={args.config} comes with transformer_jax:\n  {path}")
  return config


def config_of_new_run(args: argparse.Namespace) -> Config:
  """`read_config`, with the sizes of the run in `config.train.init_from` if there is one, as `train` would have it.

  The command has --accept-edits.
  """
  config = read_config(args)
  if not config.train.init_from:
    return config
  from transformer_jax.runs import init_from

  other = init_from.open_other(config, accept_edits=args.accept_edits)
  assert other is not None
  return init_from.config_from(other.config, config, read_keys(args))
