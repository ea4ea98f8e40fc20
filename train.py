"""Trains a model.

  python train.py [--config=configs/multi30k.py] [--workdir=runs/m30k] [--config.KEY=VALUE ...]

Without flags it trains the embedded default, configs/numbers.py. The same
command goes on with a run that was stopped.
"""

import os
import re
import sys
from pathlib import Path

from absl import flags, logging
from etils import epath
from ml_collections import config_flags

from transformer_jax import config as configs
from transformer_jax.compilation import use_compilation_cache
from transformer_jax.config import Config
from transformer_jax.errors import InputError, RunError
from transformer_jax.memory import use_huge_pages

_DEFAULT = Path(__file__).resolve().parent / "configs" / "numbers.py"


def parse(argv: list[str]) -> tuple[Config, str]:
  """The config with its overrides, and the run folder.

  Raises:
    InputError: a flag that is none, an unknown key, a value of the wrong type.
  """
  for argument in argv[1:]:
    key = re.match(r"--?config\.([^=]+)", argument)
    if key:
      configs.require_key(key[1])
  try:
    config = config_flags.DEFINE_config_file("config", str(_DEFAULT), "A file of configs/, and overrides of its keys.")
    workdir = flags.DEFINE_string("workdir", None, "The run folder; by default runs/ and the config file's name.")
    rest = flags.FLAGS(argv)
    file = config_flags.get_config_filename(flags.FLAGS["config"])
    getattr(config.value, "data", None)  # only now is said what kept the file from being read
    if not isinstance(config.value, Config):
      raise InputError(f"--config={file}: get_config() must give a Config of transformer_jax.config")
    chosen = configs.validated(config.value)
  except OSError as error:
    raise InputError(f"--config: {_last_line(error)}") from error
  except InputError:
    raise
  except flags.Error as error:
    raise InputError(_last_line(error)) from error
  except Exception as error:  # a config file is a program, which can fail in any way
    raise InputError(f"--config: the file fails with {type(error).__name__}: {_last_line(error)}") from error
  if len(rest) > 1:
    raise InputError(f"{rest[1]!r} is not a flag: flags begin with --, as in --config.train.steps=1000")
  return chosen, workdir.value or os.path.join("runs", Path(file.split(":")[0]).stem)


def _last_line(error: Exception) -> str:
  """The sentence of a message that may be the last line of a traceback."""
  lines = [line.strip() for line in str(error).split("\n") if line.strip()]
  sentence = re.sub(r"^([\w.]*Error: |\[Errno \d+\] )", "", lines[-1])
  config_file = re.match(r"flag (--config=.*): Error whilst parsing config file", lines[0])
  return f"{config_file[1]}: {sentence}" if config_file else sentence


def help_text() -> str:
  """How to call this program, and every key with its default."""
  keys = [
    f"  --config.{group}.{key}={value}"
    for group, keys in configs.to_dict(Config()).items()
    for key, value in keys.items()
  ]
  return "\n".join([__doc__ or "", "Keys, with their defaults before a config file changes them:", *keys])


def main(argv: list[str]) -> int:
  """Exit status 2 for what the user can mend, 1 where the work failed, one line for both."""
  if {"-h", "-help", "--help"} & set(argv[1:]):
    print(help_text())
    return 0
  logging.set_verbosity(logging.ERROR)  # the libraries have much to say
  try:
    config, workdir = parse(argv)
    use_compilation_cache()
    from transformer_jax.training.loop import train  # imports JAX, which a mistaken flag need not wait for

    train(config, epath.Path(workdir if "://" in workdir else os.path.abspath(workdir)))
  except (InputError, RunError) as error:
    print(f"train.py: error: {error}", file=sys.stderr)
    return error.exit_status
  return 0


if __name__ == "__main__":
  use_huge_pages()
  sys.exit(main(sys.argv))
