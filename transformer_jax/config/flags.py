"""The flags of train.py: of an experiment, `--config=FILE[:ARGUMENT]` and `--config.KEY=VALUE`, and of its hosts."""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from absl import flags
from ml_collections import config_flags

from transformer_jax.config import Config, serialization
from transformer_jax.runtime.errors import InputError


class Cluster(NamedTuple):
  """Which of several hosts this process is; all None where the platform is to tell.

  Attributes:
    coordinator: HOST:PORT on host 0, free there and within reach of all.
    hosts: how many there are; 1 is this process by itself, whatever the platform tells.
    host: the number of this one, from 0.
  """

  coordinator: str | None = None
  hosts: int | None = None
  host: int | None = None


class Experiment(NamedTuple):
  """What the flags say.

  Attributes:
    config: with its overrides, validated.
    name: of the config file and its argument, as in `table3-B-dk16`; names the run folder by default.
    workdir: the flag --workdir, or None.
    cluster: the flags --coordinator, --hosts and --host.
    accept_edits: the flag --accept-edits: files of run folders that were edited by hand count.
  """

  config: Config
  name: str
  workdir: str | None
  cluster: Cluster
  accept_edits: bool


def parse(argv: Sequence[str], default: str | None) -> Experiment:
  """Reads the flags of one experiment.

  A config file is a program: it is run, and finds its neighbours as `configs.NAME`.

  Args:
    argv: the program's name and its flags.
    default: the config file where no --config is given; None asks for one.

  Raises:
    InputError: an unknown flag, an unknown key, a value of the wrong type, a config file that fails.
  """
  keys = [match[1] for argument in argv[1:] if (match := re.match(r"--?config\.([^=]+)", argument))]
  for key in keys:
    serialization.require_key(key)
  values = flags.FlagValues()
  help_text = "A file of configs/, and overrides of its keys."
  try:
    found = config_flags.DEFINE_config_file("config", default, help_text, values, sys_argv=list(argv))
    workdir = flags.DEFINE_string("workdir", None, "The run folder.", flag_values=values)
    accept_edits = flags.DEFINE_boolean("accept-edits", False, "Files edited by hand count.", flag_values=values)
    cluster = _define_cluster(values)
    with _neighbours(argv, default):
      rest = values(list(argv))
      file = config_flags.get_config_filename(values["config"])
      getattr(found.value, "data", None)  # only now is said what kept the file from being read
    if not isinstance(found.value, Config):
      raise InputError(f"--config={file}: get_config() must give a Config of transformer_jax.config")
    chosen = serialization.validated(found.value)
  except OSError as error:
    raise InputError(f"--config: {_last_line(error)}") from error
  except InputError:
    raise
  except flags.Error as error:
    raise InputError(_last_line(error)) from error
  except Exception as error:  # a config file can fail in any way
    if "not found on dataclass" in str(error):
      _require_keys_of_this_model(keys, argv, default)
    raise InputError(f"--config: the file fails with {type(error).__name__}: {_last_line(error)}") from error
  if len(rest) > 1:
    raise InputError(f"{rest[1]!r} is not a flag: flags begin with --, as in --config.train.steps=1000")
  path, _, argument = file.partition(":")
  name = re.sub(r"[^\w.]+", "-", f"{Path(path).stem}-{argument}").strip("-")
  checked = _checked(Cluster(*(flag.value for flag in cluster)))
  return Experiment(chosen, name, workdir.value, checked, accept_edits.value)


def _define_cluster(values: flags.FlagValues) -> list[flags.FlagHolder]:
  return [
    flags.DEFINE_string("coordinator", None, "HOST:PORT of host 0.", flag_values=values),
    flags.DEFINE_integer("hosts", None, "How many hosts there are.", flag_values=values),
    flags.DEFINE_integer("host", None, "The number of this one, from 0.", flag_values=values),
  ]


def _checked(cluster: Cluster) -> Cluster:
  coordinator, hosts, host = cluster
  if hosts is not None and hosts < 1:
    raise InputError(f"--hosts is {hosts}, but must be positive")
  if cluster in (Cluster(), Cluster(hosts=1)):
    return cluster
  missing = [f"--{name}" for name, value in cluster._asdict().items() if value is None]
  if coordinator is None or hosts is None or host is None:
    raise InputError(f"--coordinator, --hosts and --host belong together: {' and '.join(missing)} is missing")
  if not 0 <= host < hosts:
    raise InputError(f"--host is {host}, but must be from 0 to {hosts - 1}, as --hosts is {hosts}")
  name, _, port = coordinator.rpartition(":")
  if not name or not port.isdecimal() or not 0 < int(port) < 1 << 16:
    raise InputError(f"--coordinator is {coordinator!r}, but must be HOST:PORT, as in 10.0.0.1:8476")
  return cluster


def _require_keys_of_this_model(keys: Sequence[str], argv: Sequence[str], default: str | None) -> None:
  """Raises InputError where a key is one of another model's: which model it is, only the file can tell."""
  file = [argument for argument in argv[1:] if re.match(r"--?config=", argument)]
  config = parse([argv[0], *file], default).config
  for key in keys:
    serialization.require_key(key, config)


@contextmanager
def _neighbours(argv: Sequence[str], default: str | None) -> Iterator[None]:
  """Lets a config file import another one of its folder, from wherever the program is called."""
  files = [re.sub(r"--?config=", "", argument) for argument in argv[1:] if re.match(r"--?config=", argument)]
  folder = str(Path((files or [default or "."])[-1].partition(":")[0]).resolve().parent.parent)
  sys.path.insert(0, folder)
  try:
    yield
  finally:
    sys.path.remove(folder)


def _last_line(error: Exception) -> str:
  """The sentence of a message that may be the last line of a traceback."""
  lines = [line.strip() for line in str(error).split("\n") if line.strip()]
  sentence = re.sub(r"^([\w.]*Error: |\[Errno \d+\] )", "", lines[-1])
  config_file = re.match(r"flag (--config=.*): Error whilst parsing config file", lines[0])
  return f"{config_file[1]}: {sentence}" if config_file else sentence
