"""The package's commands as children of a benchmark. A signal ends train.py as well, and the run is saved."""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def end_children() -> None:
  """Lets a signal end the programs that this one has started, too."""
  for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, frame: sys.exit(128 + number))


def train(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
  """Calls train.py, and ends this program if its status is not 0 or the run has made more updates than asked for."""
  program = [sys.executable, str(ROOT / "train.py"), *arguments]
  # A Ctrl-C does not reach a new session.
  with subprocess.Popen(program, start_new_session=True, env=environment) as process:
    try:
      status = process.wait()
    except BaseException:
      process.terminate()  # the process saves its state, and this program waits for it
      raise
  if status < 0:
    raise SystemExit(f"train.py was ended by {signal.Signals(-status).name}: the same command resumes")
  if status:
    sys.exit(status)  # train.py has told why
  for run in (Path(flag.removeprefix("--workdir=")) for flag in arguments if flag.startswith("--workdir=")):
    _require_no_more_updates(run)


def _require_no_more_updates(run: Path) -> None:
  """Ends this program if a run was longer before: train.py finds it finished, but it is not what was asked for."""
  steps = json.loads((run / "config.json").read_text())["train"]["steps"]
  made = last_checkpoint(run)
  if made > steps:
    sys.exit(f"{run} has made {made} updates, more than {steps}: choose other --runs")


def last_checkpoint(run: Path) -> int:
  """The step of a run's last checkpoint; 0 without one."""
  return max((int(path.name) for path in (run / "checkpoints").glob("*") if path.name.isdigit()), default=0)


def command(arguments: Sequence[str], text: bytes = b"", environment: Mapping[str, str] | None = None) -> bytes:
  """The standard output of one command of the package, with `text` as its standard input."""
  program = [sys.executable, "-m", "transformer_jax", *arguments]
  return subprocess.run(program, input=text, stdout=subprocess.PIPE, check=True, env=environment).stdout
