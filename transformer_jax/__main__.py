"""The command line: `transformer-jax COMMAND`, or `python -m transformer_jax COMMAND`."""

import argparse
import io
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from transformer_jax.commands import COMMANDS
from transformer_jax.commands.endings import ending
from transformer_jax.commands.experiment import print_help
from transformer_jax.runtime import versions
from transformer_jax.runtime.errors import PROGRAM, InputError, one_line, writing
from transformer_jax.runtime.process import (
  forbid_64_bits,
  leave_threads,
  prefer_cublas,
  raise_gc_threshold,
  use_huge_pages,
)
from transformer_jax.runtime.standard_streams import leave_standard_output, open_standard_error
from transformer_jax.runtime.wording import nearest, summary

_NAMES = ("FILE", "FILE[:ARGUMENT]", "DIR", "FOLDER", "PREFIX", "PATH")  # the metavars of files and folders
_FILTERS = ("translate", "classify")  # commands from standard input to standard output


def program(argv: Sequence[str] | None = None) -> int:
  """Makes the settings of the process and calls `main`; without `argv` it takes the arguments of the process."""
  use_huge_pages()
  prefer_cublas()
  forbid_64_bits()
  raise_gc_threshold()
  try:
    status = main(sys.argv[1:] if argv is None else argv)
  except SystemExit as ended:  # after a signal, once the command has left everything in order; or after --help
    if not isinstance(ended.code, int):
      raise
    return leave_threads(ended.code)
  return leave_threads(status, interrupted=status == 128 + signal.SIGINT)


def main(argv: Sequence[str]) -> int:
  """Runs one command and returns its exit status; an error is one line on standard error."""
  open_standard_error()
  try:
    _run(argv)
    with writing("standard output"):
      sys.stdout.flush()
  except (Exception, KeyboardInterrupt) as error:
    found = ending(error, argv[0] if argv else "")
    if found is None:
      raise
    status, sentence = found
    leave_standard_output()
    if sentence:
      print(f"{PROGRAM}: error: {one_line(sentence)}", file=sys.stderr)
    return status
  return 0


def _run(argv: Sequence[str]) -> None:
  if sys.stdout is None:
    raise InputError("standard output is closed: give it a file, a pipe or /dev/null")
  if isinstance(sys.stdout, io.TextIOWrapper):
    sys.stdout.reconfigure(errors="backslashreplace")  # a file name may not be valid text
  if not argv:
    raise InputError(f"a command is missing; there are {', '.join(COMMANDS)}")
  if not argv[0].startswith("-") and argv[0] not in COMMANDS:
    raise InputError(f"{argv[0]!r} is not a command{nearest(argv[0], COMMANDS)}; there are {', '.join(COMMANDS)}")
  args, rest = _parser().parse_known_args(argv)
  if args.version:
    print(versions.own_version())
    return
  if args.command is None:
    raise InputError(f"a command must come before {argv[0]}; there are {', '.join(COMMANDS)}")
  _require_known(args, rest)
  _require_names(args, argv)
  args.overrides = rest
  if getattr(args, "help", False):  # of a command with the keys of a config, which argparse does not know
    print_help(args)
  else:
    args.run(args)


def _require_known(args: argparse.Namespace, rest: Sequence[str]) -> None:
  """Raises InputError for arguments that argparse does not know, except the keys of a config and their values."""
  takes_keys, more = "config" in args, f"; `{args.parser.prog} --help` tells more"
  args.parser.require_flags(rest)
  if rest and not takes_keys:
    reads = f"; it reads standard input, as in `{args.parser.prog} ... < {rest[0]}`"
    hint = reads if args.command in _FILTERS and not rest[0].startswith("-") else ""
    raise InputError(f"unrecognized arguments: {' '.join(rest)}{hint}{more}")


def _require_names(args: argparse.Namespace, argv: Sequence[str]) -> None:
  """Raises InputError for a file name that is empty, as `--flag "$UNSET"` gives one, or would be dropped for another.

  A command would take an empty one for no flag, and argparse keeps the last name of a flag that takes one. That is
  what a second --output is for, but not a second text or run.
  """
  flags = Counter(argument.partition("=")[0] for argument in argv)
  for action in args.parser._actions:
    if action.metavar not in _NAMES:
      continue
    flag, given = (action.option_strings or [str(action.metavar)])[-1], getattr(args, action.dest, None)
    if "" in (given if isinstance(given, list) else [given]):
      raise InputError(f"{flag} is empty: give it a name" + (", or leave it out" if action.option_strings else ""))
    if flags[flag] > 1 and flag != "--output" and not isinstance(given, list):
      raise InputError(f"{flag} is given {flags[flag]} times, but takes one name: leave out the others")


def _keys_like(flag: str) -> list[str]:
  """The keys of a config that may be meant by a flag such as `--steps`."""
  from transformer_jax.config import Config, serialization

  name = flag.lstrip("-").replace("-", "_")
  groups = serialization.to_dict(Config()).items()  # `flat` would wait for JAX
  keys = [f"{group}.{key}" for group, values in groups if isinstance(values, dict) for key in values]
  return [f"--config.{key}" for key in keys if f".{key}".endswith(f".{name}")]


class _Parser(argparse.ArgumentParser):
  """Raises InputError where argparse would print the usage and exit."""

  given: Sequence[str] = ()

  def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
    self.given = args or ()
    return super().parse_known_args(args, namespace)

  def require_flags(self, arguments: Iterable[str]) -> None:
    """Raises InputError for the first flag that the command does not have, unless it is a key of a config."""
    flags, takes_keys = self._option_string_actions, "--config" in self._option_string_actions
    for flag in (argument.partition("=")[0] for argument in arguments if argument.startswith("--")):
      if flag not in ("--", *flags) and not (takes_keys and flag.startswith("--config.")):
        meant = f" (did you mean {' or '.join(keys)}?)" if takes_keys and (keys := _keys_like(flag)) else ""
        known = meant or nearest(flag, flags)
        raise InputError(f"{flag} is not a flag of `{self.prog}`{known}; `{self.prog} --help` tells more")

  def error(self, message: str) -> NoReturn:
    if "required" in message:  # a misspelt flag is missing, too
      self.require_flags(self.given)
    hint = " (one that begins with - stands behind =, as in --flag=-x)" if "expected one argument" in message else ""
    for kind, words in (("int", "a whole number"), ("float", "a number")):
      message = re.sub(f"invalid {kind} value: (.*)", rf"\1 is not {words}", message)
    raise InputError(f"{message}{hint}; `{self.prog} --help` tells more")

  def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
    with writing("standard output"):  # of the help
      sys.stdout.flush()
    super().exit(status, message)


def _parser() -> argparse.ArgumentParser:
  description = "Trains Transformers and their relatives, and translates, evaluates and generates with them."
  parser = _Parser(prog=PROGRAM, description=description, allow_abbrev=False)
  parser.add_argument("--version", action="store_true", help="print the version, and the commit of a checkout")
  commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
  for name, module in COMMANDS.items():
    description = module.__doc__ or ""
    command = commands.add_parser(
      name, help=summary(description), description=description, allow_abbrev=False, conflict_handler="resolve"
    )
    command.set_defaults(run=module.run, parser=command)
    module.add_arguments(command)
  return parser


if __name__ == "__main__":
  sys.exit(program())
