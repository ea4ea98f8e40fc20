"""Stops a training run again and again, and compares its result with that of an uninterrupted run.

    python benchmarks/kills.py [--kills 50] [--signals 16] [--seed 0] [--folder DIR] [--json FILE]

`train.py` trains a tiny model. SIGKILL is sent at random moments: after some seconds of processor time, when the log
has grown by some lines, and while a checkpoint is written, that is, while a `checkpoints/*.orbax-checkpoint-tmp`
exists. SIGTERM and Ctrl-C (SIGINT) are sent before the first update, between updates, during validation and while a
checkpoint is written. After each signal the same command resumes the run, and after the last one it runs to the end.
Then these are compared with the uninterrupted run:

- parameters, optimizer state and moving average: every bit;
- `metrics.jsonl`: every line, except the seconds in it; the curves of TensorBoard: every point, once.

The program ends with status 1 if anything differs, an exit status is not that of the signal, or there is a traceback.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import children
import programs
import report
import tiny
from curves import read_points

KEYS = {
  "train.log_every": 7,  # does not divide save_every, so that checkpoints are between two lines
  "train.save_every": 50,
  "train.keep": 2,
  "evaluate.every": 105,
}
STEPS_A_FAULT = 120  # more than any fault waits for, so that the run does not end too early on a fast machine
FAULTS: dict[signal.Signals, tuple[str, ...]] = {
  signal.SIGKILL: ("at a moment", "in the log", "in a save"),
  signal.SIGTERM: ("in the start-up", "in the log", "in validation", "in a save"),
  signal.SIGINT: ("in the start-up", "in the log", "in validation", "in a save"),
}


def main() -> None:
  args = parse()
  # A shell makes its background programs ignore Ctrl-C, and this program's processes would inherit that.
  signal.signal(signal.SIGINT, signal.default_int_handler)
  with tempfile.TemporaryDirectory() as scratch:
    folder = Path(args.folder or scratch).resolve()
    plan = [(signal.SIGKILL, when) for when in _spread(FAULTS[signal.SIGKILL], args.kills)]
    for number in (signal.SIGTERM, signal.SIGINT):
      plan += [(number, when) for when in _spread(FAULTS[number], args.signals // 2)]
    numbers = random.Random(args.seed)
    numbers.shuffle(plan)
    runs = tiny.TinyRuns(folder, {**KEYS, "train.steps": max(200, STEPS_A_FAULT * len(plan))})
    whole, stopped = folder / "whole", folder / "stopped"
    run_to_the_end(runs, whole)
    faults = []
    for index, (number, when) in enumerate(plan, 1):
      faults.append(Victim(runs, stopped, number, when, numbers).outcome())
      report.progress(f"{index} of {len(plan)}: {faults[-1]}")
    run_to_the_end(runs, stopped)
    differences = list(compare(whole, stopped))
  wrong = [fault for fault in faults if fault.wrong]
  report.finish("kills", rows(faults), args.json, faults=[vars(fault) for fault in faults], differences=differences)
  print(
    f"{len(faults)} faults, {len(wrong)} with another end than they should have; differences: {differences or 'none'}"
  )
  sys.exit(bool(wrong or differences))


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Faults of a training run.", allow_abbrev=False)
  add = parser.add_argument
  add("--kills", type=int, default=50, metavar="N", help="SIGKILLs (default 50)")
  add("--signals", type=int, default=16, metavar="N", help="SIGTERMs and Ctrl-Cs, half of each (default 16)")
  add("--seed", type=int, default=0, metavar="N", help="of the moments (default 0)")
  add("--folder", metavar="DIR", help="for the two runs (default: deleted at the end)")
  report.add_arguments(parser, with_peers=False)
  return parser.parse_args()


def _spread(kinds: tuple[str, ...], count: int) -> list[str]:
  return [kinds[i % len(kinds)] for i in range(count)]


@dataclass
class Fault:
  """One signal to the run, and its outcome."""

  signal: str
  when: str
  status: int  # the exit status of the process: the negative number of the signal, if that ended it
  hit: bool  # whether the moment was met: a half-written checkpoint existed, or the validation was running
  step: int  # the step of the last checkpoint afterwards
  logged: int  # the last step in the log afterwards
  wrong: str  # the error; empty if there was none


class Victim:
  """One start of the run, stopped by a signal.

  Args:
    runs: the settings of the run, to start it.
    workdir: the run folder.
    number: the number of the signal.
    when: the moment, one of `FAULTS`.
    numbers: the random number generator.
  """

  def __init__(self, runs: tiny.TinyRuns, workdir: Path, number: signal.Signals, when: str, numbers: random.Random):
    self._workdir, self._number, self._when = workdir, number, when
    self._numbers = numbers
    self._before, self._old = children.last_checkpoint(workdir), set(_half_written(workdir))
    self._log = workdir.with_suffix(".stderr")
    lines = count_lines(workdir)
    with self._log.open("w") as log:
      self._process = runs.start(workdir, log)
    {
      "at a moment": lambda: self._until_worked(numbers.uniform(0.0, 10.0)),
      "in the start-up": lambda: self._until_worked(numbers.uniform(0.5, 4.0)),
      "in the log": lambda: self._until(lambda: count_lines(workdir) >= lines + numbers.randint(1, 8)),
      "in validation": self._until_validation,
      "in a save": self._until_save,
    }[when]()
    self._saving = bool(set(_half_written(workdir)) - self._old)
    self._process.send_signal(number)
    try:
      self._process.wait(timeout=600)
    except subprocess.TimeoutExpired:
      self._process.kill()
      sys.exit(f"{number.name} {when} did not end the process")

  def outcome(self) -> Fault:
    status, said = self._process.returncode, self._log.read_text()
    step = children.last_checkpoint(self._workdir)
    started = "stopped by" in said
    expected = 128 + self._number if started else -self._number
    wrong = [f"status {status}"] if status != expected else []
    wrong += ["a traceback"] if "Traceback" in said else []
    wrong += [f"step {self._before} was lost"] if step < self._before else []
    wrong += ["not saved"] if started and f"after step {step};" not in said else []
    # Before the training loop handles signals, a signal ends the process at once: there is nothing to save.
    wrong += ["no answer"] if not started and self._number != signal.SIGKILL and self._when != "in the start-up" else []
    # SIGKILL leaves a half-written checkpoint; after other signals the process finishes it.
    saving = bool(set(_half_written(self._workdir)) - self._old) if self._number == signal.SIGKILL else self._saving
    hit = (
      saving if "save" in self._when else step % KEYS["evaluate.every"] == 0 if "validation" in self._when else False
    )
    return Fault(
      self._number.name, self._when, status, hit or saving, step, tiny.last_logged(self._workdir), ", ".join(wrong)
    )

  def _until(self, condition: Callable[[], bool]) -> None:
    while self._process.poll() is None and not condition():
      time.sleep(0.0005)
    if self._process.poll() is not None:
      sys.exit(f"the run ended before {self._number.name} {self._when}:\n{self._log.read_text()[-2000:]}")

  def _until_worked(self, seconds: float) -> None:
    """Waits until the process has used `seconds` of processor time, as other programs may run beside it.

    On a fast machine the run would get too far in that time: some lines of the log end it too.
    """
    ticks = seconds * os.sysconf("SC_CLK_TCK")
    stat = Path(f"/proc/{self._process.pid}/stat")
    lines = count_lines(self._workdir) + self._numbers.randint(1, 16)
    self._until(
      lambda: (
        sum(map(int, stat.read_text().rpartition(")")[2].split()[11:13])) >= ticks
        or count_lines(self._workdir) >= lines
      )
    )

  def _until_validation(self) -> None:
    """Waits until this process prints the log of a step that is validated next; the file may have older lines."""
    every = KEYS["evaluate.every"]
    assert every % KEYS["train.log_every"] == 0
    target = (children.last_checkpoint(self._workdir) // every + 1) * every
    self._until(lambda: f"step {target}: " in self._log.read_text())

  def _until_save(self) -> None:
    """Waits until there is a new half-written checkpoint, and up to a moment more."""
    seen: set[str] = set()
    wanted = self._numbers.randint(1, 2)

    def enough() -> bool:
      seen.update(set(_half_written(self._workdir)) - self._old)
      return len(seen) >= wanted

    self._until(enough)
    time.sleep(self._numbers.uniform(0.0, 0.05))


def _half_written(workdir: Path) -> Iterator[str]:
  """The half-written checkpoints, each with its folder's inode number, as the same step may be written again."""
  with suppress(FileNotFoundError), os.scandir(workdir / "checkpoints") as entries:
    yield from (f"{each.name} {each.inode()}" for each in entries if each.name.endswith(".orbax-checkpoint-tmp"))


def count_lines(workdir: Path) -> int:
  try:
    return (workdir / "metrics.jsonl").read_bytes().count(b"\n")
  except FileNotFoundError:
    return 0


def run_to_the_end(runs: tiny.TinyRuns, workdir: Path, environment: Mapping[str, str] | None = None) -> None:
  with workdir.with_suffix(".stderr").open("w") as log:
    status = runs.start(workdir, log, environment).wait()
  if status:
    sys.exit(f"train.py ended with {status}:\n{workdir.with_suffix('.stderr').read_text()[-2000:]}")


def compare(whole: Path, stopped: Path) -> Iterator[str]:
  """The differences between two runs."""
  import jax
  import numpy as np

  from transformer_jax.runs import checkpoint, run_folder
  from transformer_jax.runs import open as open_run
  from transformer_jax.tasks.translation import TASK
  from transformer_jax.training.step import abstract_state

  states = []
  for workdir in map(run_folder.folder_of, (whole, stopped)):
    config = open_run(workdir).config
    restored = checkpoint.Checkpoints(workdir, config.train.keep).restore(abstract_state(config, TASK))
    assert restored is not None
    states.append(jax.tree_util.tree_leaves_with_path(jax.device_get(restored.state)))
  for (path, a), (_, b) in zip(*states, strict=True):
    if np.asarray(a).tobytes() != np.asarray(b).tobytes():
      yield f"state{jax.tree_util.keystr(path)}"
  lines = tiny.metrics(whole), tiny.metrics(stopped)
  if lines[0] != lines[1]:
    first = next((i for i, (a, b) in enumerate(zip(*lines, strict=False), 1) if a != b), "their number")
    yield f"metrics.jsonl (line {first})"
  timing = tiny.TIMING
  points = [
    {name: found for name, found in read_points(workdir / "tensorboard").items() if name.split("/")[1] not in timing}
    for workdir in (whole, stopped)
  ]
  if points[0] != points[1]:
    yield "TensorBoard: " + ", ".join(name for name in points[0] if points[0][name] != points[1].get(name))


def rows(faults: list[Fault]) -> list[dict[str, Any]]:
  """The rows of the table, one for each signal and moment."""
  table = []
  for number, kinds in FAULTS.items():
    for when in kinds:
      these = [fault for fault in faults if (fault.signal, fault.when) == (number.name, when)]
      if these:
        table.append(
          {
            "signal": number.name,
            "when": when,
            "times": len(these),
            "hit a save or validation": sum(fault.hit for fault in these),
            "exit status": ", ".join(sorted({str(fault.status) for fault in these})),
            "wrong": sum(bool(fault.wrong) for fault in these),
          }
        )
  return table


if __name__ == "__main__":
  programs.run(main)
