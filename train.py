"""Trains a model.

  python train.py [--config=configs/multi30k.py] [--workdir=runs/m30k] [--config.KEY=VALUE ...]

Without flags it trains the embedded default, configs/numbers.py. The same
command goes on with a run that was stopped. On several hosts it is called once
on each; where no platform tells them of each other, --coordinator=HOST:PORT,
--hosts=N and --host=I do (docs/clusters.md). Where a run folder's config.json,
tokenizer.model or provenance.json is not as it was written, --accept-edits
takes it as it is.
"""

import os
import signal
import sys
from pathlib import Path

from absl import logging

from transformer_jax.config import Config, flags, serialization
from transformer_jax.runtime.compilation_cache import use_compilation_cache
from transformer_jax.runtime.errors import InputError, RunError, is_out_of_memory, one_line, writing
from transformer_jax.runtime.files import keep_beside
from transformer_jax.runtime.process import raise_gc_threshold, use_huge_pages
from transformer_jax.runtime.progress import say
from transformer_jax.runtime.standard_streams import leave_standard_output, open_standard_error

_DEFAULT = Path(__file__).resolve().parent / "configs" / "numbers.py"


def help_text() -> str:
  """How to call this program, and every key with its default."""
  keys = [f"  --config.{key}={value}" for key, value in serialization.flat(Config()).items()]
  return "\n".join([__doc__ or "", "Keys, with their defaults before a config file changes them:", *keys])


def main(argv: list[str]) -> int:
  """Exit status 2 for what the user can mend, 1 where the work failed, one line for both."""
  open_standard_error()
  logging.set_verbosity(logging.FATAL)  # the libraries have much to say, and say errors that they raise as well
  try:
    if {"-h", "-help", "--help"} & set(argv[1:]):
      with writing("standard output"):
        print(help_text(), flush=True)
      return 0
    experiment = flags.parse(argv, str(_DEFAULT))
    workdir = experiment.workdir or os.path.join("runs", experiment.name)
    if kept := keep_beside(workdir):
      say(f"there is no home folder: what later starts can use is kept in {kept}")
    use_compilation_cache()
    from transformer_jax.runtime import hosts  # imports JAX, which a mistaken flag need not wait for

    hosts.join(*experiment.cluster)
    from transformer_jax.runs import run_folder
    from transformer_jax.runtime import devices
    from transformer_jax.trainer.loop import train

    devices.require_devices()
    folder = run_folder.folder_of(workdir)
    with hosts.explain_peer_failure(), run_folder.exclusive_lock(folder):
      train(experiment.config, folder, accept_edits=experiment.accept_edits)
  except (InputError, RunError) as error:
    return _failed(str(error), error.exit_status)
  except BrokenPipeError:
    leave_standard_output()  # nobody reads the scores, as in `2>&1 | head`: the run is done all the same
  except OSError as error:
    return _failed(f"{error}; what was saved before is untouched", RunError.exit_status)
  except Exception as error:
    if not is_out_of_memory(error):
      raise
    message = (
      "memory is exhausted: raise config.train.accumulation, which changes no result, or lower "
      "config.train.batch_tokens; `python -m transformer_jax plan` tells what a config needs"
    )
    return _failed(message, RunError.exit_status)
  return 0


def _failed(message: str, status: int) -> int:
  leave_standard_output()
  print(f"train.py: error: {one_line(message)}", file=sys.stderr)
  return status


if __name__ == "__main__":
  # Until the loop is there, which saves what was done, Ctrl-C ends the program at once, without a traceback.
  signal.signal(signal.SIGINT, signal.SIG_DFL)
  use_huge_pages()
  raise_gc_threshold()
  sys.exit(main(sys.argv))
