"""How a command ends: the one table of errors, exit statuses and sentences."""

import signal

from transformer_jax.runtime.errors import InputError, RunError, is_out_of_memory

# What to do where memory is exhausted, by command.
_LESS_MEMORY = {
  "train": (
    "raise config.train.accumulation, which changes no result, or lower config.train.batch_tokens; "
    "`transformer-jax plan` tells what a config needs"
  )
}


def ending(error: BaseException, command: str) -> tuple[int, str] | None:
  """The exit status and the sentence of an error; the sentence is empty where there is nothing to say.

  Args:
    error: what a command raised.
    command: its name.

  Returns:
    None for a mistake of the program itself, which ends with a traceback.
  """
  match error:
    case InputError() | RunError():  # 2 and 1
      return error.exit_status, str(error)
    case KeyboardInterrupt():
      return 128 + signal.SIGINT, ""
    case BrokenPipeError() if command == "train":  # nobody reads its scores: the run is done all the same
      return 0, ""
    case BrokenPipeError():  # nobody reads on, as in `| head`: as a program that SIGPIPE ends
      return 128 + signal.SIGPIPE, ""
    case OSError():
      where = "" if error.filename else "standard output, or a temporary file: "
      return RunError.exit_status, f"{where}{error}; what was saved before is untouched"
    case Exception() if is_out_of_memory(error):
      advice = _LESS_MEMORY.get(command, "use a smaller batch or beam size")
      return RunError.exit_status, f"memory is exhausted: {advice}"
  return None
