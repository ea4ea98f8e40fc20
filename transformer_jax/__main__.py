"""The command line: `python -m transformer_jax COMMAND`, or `transformer-jax COMMAND`."""

import argparse
import io
import sys
from collections.abc import Sequence
from typing import NoReturn

from transformer_jax.commands import COMMANDS
from transformer_jax.runtime.errors import InputError, RunError, is_out_of_memory, one_line, writing
from transformer_jax.runtime.process import raise_gc_threshold, use_huge_pages
from transformer_jax.runtime.standard_streams import leave_standard_output, open_standard_error


def main(argv: Sequence[str] | None = None) -> int:
  """Runs one command; what the user can mend ends in one line on stderr and status 2, failed work in status 1."""
  if argv is None:
    use_huge_pages()
    raise_gc_threshold()
  open_standard_error()
  try:
    if sys.stdout is None:
      raise InputError("standard output is closed: give it a file, a pipe or /dev/null")
    if isinstance(sys.stdout, io.TextIOWrapper):
      sys.stdout.reconfigure(errors="backslashreplace")  # a file's name can be no text
    args, rest = _parser().parse_known_args(argv)
    if args.command is None:
      raise InputError(f"a command is missing; there are {', '.join(COMMANDS)}")
    overrides = [argument for argument in rest if "config" in args and argument.startswith("--config.")]
    if overrides != rest:
      raise InputError(f"unrecognized arguments: {' '.join(rest)}; `transformer-jax {args.command} --help` tells more")
    args.overrides = overrides
    args.run(args)
    with writing("standard output"):
      sys.stdout.flush()
  except (InputError, RunError) as error:
    return _failed(str(error), error.exit_status)
  except BrokenPipeError:
    leave_standard_output()
    return 128 + 13  # nobody reads on, as in `| head`: as a program that SIGPIPE ends
  except OSError as error:
    where = "" if error.filename else "standard output, or a temporary file: "
    return _failed(f"{where}{error}", RunError.exit_status)
  except KeyboardInterrupt:
    return 128 + 2
  except Exception as error:
    if not is_out_of_memory(error):
      raise
    return _failed("memory is exhausted: use a smaller batch or beam size", RunError.exit_status)
  return 0


def _failed(message: str, status: int) -> int:
  leave_standard_output()
  print(f"transformer-jax: error: {one_line(message)}", file=sys.stderr)
  return status


class _Parser(argparse.ArgumentParser):
  """Raises InputError where argparse would print how the program is used and exit."""

  def error(self, message: str) -> NoReturn:
    raise InputError(f"{message}; `{self.prog} --help` tells more")


def _parser() -> argparse.ArgumentParser:
  parser = _Parser(prog="transformer-jax", description="The Transformer, trained by train.py.", allow_abbrev=False)
  commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
  for name, module in COMMANDS.items():
    summary = module.DESCRIPTION.split(": ")[0].replace("\n", " ")
    command = commands.add_parser(name, help=summary, description=module.DESCRIPTION, allow_abbrev=False)
    command.set_defaults(run=module.run)
    module.add_arguments(command)
  return parser


if __name__ == "__main__":
  sys.exit(main())
