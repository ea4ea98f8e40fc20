"""The table of errors with their exit statuses and messages, for all commands."""

import os
import signal

from transformer_jax.runtime.errors import (
  ADVICE,
  OF_NAMES,
  InputError,
  OptionError,
  RunError,
  is_out_of_memory,
  write_error,
)

# The advice if memory is exhausted, by command.
_LESS_MEMORY = {
  "train": (
    "raise config.train.accumulation, which changes no result, or lower config.train.batch_tokens; "
    "`transformer-jax plan` tells what a config needs"
  ),
  "backtranslate": "give a smaller --batch-size and another --output, as a corpus keeps its batch size",
}


def ending(error: BaseException, command: str) -> tuple[int, str] | None:
  """The exit status and the message of an error; the message is empty if none is to be printed.

  Args:
    error: the error that a command raised.
    command: the name of the command.

  Returns:
    None for a bug of the program, which ends with a traceback.
  """
  match error:
    case OptionError():
      return error.exit_status, error.of_flag()
    case InputError() | RunError():  # statuses 2 and 1
      return error.exit_status, str(error)
    case KeyboardInterrupt():
      return 128 + signal.SIGINT, ""
    case BrokenPipeError() if command == "train":  # only its scores were not read: the run is done
      return 0, ""
    case BrokenPipeError():  # the reader is gone, as with `| head`: the status of a program that SIGPIPE ends
      return 128 + signal.SIGPIPE, ""
    case OSError() if error.errno in OF_NAMES and error.filename:
      return InputError.exit_status, f"{error.filename}: {error.strerror}; choose another name"
    case FileNotFoundError() if not error.filename and _is_nowhere():
      return InputError.exit_status, "the current folder is no longer there: change to one that is"
    case OSError() if error.errno in ADVICE and not error.filename:
      return RunError.exit_status, str(write_error("standard output, or a temporary file", error))
    case OSError():
      where = "" if error.filename else "standard output, or a temporary file: "
      return RunError.exit_status, f"{where}{error}; what was saved before is untouched"
    case Exception() if is_out_of_memory(error):
      advice = _LESS_MEMORY.get(
        command, "give a smaller --batch-size or --beam-size if the command has them, or fewer or shorter lines"
      )
      return RunError.exit_status, f"memory is exhausted: {advice}"
  return None


def _is_nowhere() -> bool:
  """Whether the current folder was deleted."""
  try:
    os.getcwd()
  except FileNotFoundError:
    return True
  return False
