"""What training reports: `metrics.jsonl`, TensorBoard, and the sums between two logs."""

import json
import operator
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import jax
from etils import epath

from transformer_jax.runs.metrics_file import FILE, read_lines
from transformer_jax.runtime import devices
from transformer_jax.runtime.errors import writing
from transformer_jax.runtime.files import write_atomically
from transformer_jax.runtime.progress import say
from transformer_jax.trainer.curves import Curves
from transformer_jax.training.sums import Sums, means


@dataclass
class MetricsAccumulator:
  """What the updates since the last line of the log add up to.

  A checkpoint holds it, so that a run that was stopped between two lines writes
  the lines that it would have written.

  Attributes:
    sums: over the updates that were not skipped.
    gradient_norm: of the gradients that last changed the parameters.
    learning_rate: of the last update.
    updates, skipped: how many, and how many of them changed nothing, as their loss or gradients were not finite.
    skipped_in_a_row: how many updates up to the last one were skipped without a break, some of them perhaps before
      this interval.
    most_skipped: the most that this number was after an update of this interval.
    most_skipped_to: the number of that update in this interval, from 1.
    seconds: what they took.
  """

  sums: Any = field(default_factory=lambda: _sums({}))
  gradient_norm: float = 0.0
  learning_rate: float = 0.0
  updates: int = 0
  skipped: int = 0
  skipped_in_a_row: int = 0
  most_skipped: int = 0
  most_skipped_to: int = 0
  seconds: float = 0.0

  def add(self, metrics: dict[str, Any]) -> None:
    """One update's metrics, as `train_step` returns them."""
    sums = jax.tree.map(float, metrics["sums"])
    self.sums = jax.tree.map(operator.add, self.sums, sums) if self.updates else sums
    self.learning_rate = float(metrics["learning_rate"])
    self.updates += 1
    if metrics["skipped"]:
      self.skipped += 1
      self.skipped_in_a_row += 1
      if self.skipped_in_a_row > self.most_skipped:
        self.most_skipped, self.most_skipped_to = self.skipped_in_a_row, self.updates
    else:
      self.skipped_in_a_row = 0
      self.gradient_norm = float(metrics["gradient_norm"])

  def line(self) -> dict[str, float]:
    """What the log says; means are left out where all updates were skipped."""
    changed = means(self.sums) | {"gradient_norm": self.gradient_norm} if self.skipped < self.updates else {}
    return changed | {
      "learning_rate": self.learning_rate,
      "updates": self.updates,
      "skipped": self.skipped,
      "target_tokens": self.sums.tokens,
      "seconds": self.seconds,
      "tokens_per_second": self.sums.tokens / self.seconds,
    }

  def to_dict(self) -> dict[str, Any]:
    """As a checkpoint holds it."""
    return asdict(self)

  @classmethod
  def from_dict(cls, values: Mapping[str, Any]) -> "MetricsAccumulator":
    """The inverse of `to_dict`, of numbers of any type."""
    numbers: dict[str, Any] = {f.name: type(f.default)(values.get(f.name, 0)) for f in fields(cls) if f.name != "sums"}
    return cls(sums=_sums(values["sums"]), **numbers)


def _sums(values: Mapping[str, Any]) -> Any:
  """`Sums` of Python's own numbers, which add up exactly the same however often they are saved in between."""
  others = {name: _sums(other) for name, other in (values.get("others") or {}).items()}
  numbers: dict[str, Any] = {f.name: float(values.get(f.name, 0)) for f in fields(Sums) if f.name != "others"}
  return Sums(**numbers, others=others)


class MetricsLog:
  """Appends lines to `metrics.jsonl` and points to TensorBoard's curves.

  A run that resumes at a step forgets the lines after it, which will be written
  again: line for line, the file is that of a run that was never stopped.

  Args:
    workdir: the run folder.
    step: the step that the run goes on from.
    interval: of the updates before that step that no line of the log tells of yet.

  Attributes:
    most_skipped: the first and the last step of the longest row of updates that changed nothing, some of them before
      the last flush and after the one before it; None where there was none.

  Raises:
    InputError: a line of `metrics.jsonl` is malformed.
    RunError: the disk is full; so do the methods.
  """

  def __init__(self, workdir: epath.Path, step: int, interval: MetricsAccumulator):
    self._path = workdir / FILE
    self._pending: list[dict[str, Any]] = []
    self._interval = interval
    self.most_skipped: tuple[int, int] | None = None
    self._since = time.perf_counter()
    self._curves = None
    if devices.is_main_host():
      _cut_back(self._path, step, logged=step - interval.updates)
      self._curves = Curves(workdir / "tensorboard", step)

  def add(self, metrics: dict[str, Any]) -> None:
    """Remembers an update's metrics, on the device; nothing is waited for."""
    self._pending.append(metrics)

  def wait(self, in_flight: int) -> None:
    """Until no more than the last `in_flight` updates are unfinished."""
    if len(self._pending) > in_flight:
      jax.block_until_ready(self._pending[-1 - in_flight])

  def interval(self) -> MetricsAccumulator:
    """Of the updates since the last flush; waits for them, and until all that was written is on the disk."""
    self._add_up()
    if self._curves is not None:
      self._curves.flush()
    return self._interval

  def flush(self, step: int) -> dict[str, float]:
    """Writes one line for all updates since the last one and returns it; waits for them."""
    self._add_up()
    line = self._interval.line()
    last = step - self._interval.updates + self._interval.most_skipped_to
    skipped = self._interval.most_skipped
    self.most_skipped = (last - skipped + 1, last) if skipped else None
    self._interval = MetricsAccumulator(skipped_in_a_row=self._interval.skipped_in_a_row)
    self.write(step, "train", line)
    return line

  def write(self, step: int, split: str, line: dict[str, Any]) -> None:
    """Appends `line` under the name of its data."""
    if self._curves is None:
      return
    with writing(self._path):
      append(self._path, json.dumps({"step": step, "split": split, **line}) + "\n")
    self._curves.add(step, split, line)

  @contextmanager
  def clock_stopped(self) -> Iterator[None]:
    """What is done inside is no training, and does not count in its rate."""
    self._add_up()
    yield
    self._since = time.perf_counter()

  def close(self) -> None:
    """May be called again."""
    curves, self._curves = self._curves, None
    if curves is not None:
      curves.close()

  def _add_up(self) -> None:
    for metrics in jax.device_get(self._pending):
      self._interval.add(metrics)
    self._pending = []
    now = time.perf_counter()
    self._interval.seconds += now - self._since
    self._since = now


def append(path: epath.Path, text: str) -> None:
  """At the end of a file; of one on `gs://`, which has no such thing, the whole is written anew."""
  if "://" in os.fspath(path):
    path.write_text((path.read_text() if path.exists() else "") + text)
  else:
    with path.open("a") as file:
      file.write(text)


def _cut_back(path: epath.Path, step: int, logged: int) -> None:
  """Forgets the lines after `step`, and says so if lines of training up to step `logged` are not there, or changed."""
  lines = read_lines(path)
  kept = [line for line, entry in lines if entry["step"] <= step]
  if path.exists():
    write_atomically(path, b"".join(line + b"\n" for line in kept))
  trained = [(n, e) for n, (_, e) in enumerate(lines, 1) if e["step"] <= step and e["split"] == "train"]
  if max((entry["step"] for _, entry in trained), default=0) < logged:
    say(f"{path} has no line of step {logged}, which the run had logged: what is missing there stays missing")
  elif gap := _gap(trained):
    say(f"{path}, line {gap[0]} {gap[1]}: lines before it were deleted or changed, and stay so")


def _gap(trained: list[tuple[int, dict[str, Any]]]) -> tuple[int, str] | None:
  """The number of the first line of training that does not begin where the one before it ends, and how it differs."""
  last = 0
  for number, entry in trained:
    updates = entry.get("updates")
    if isinstance(updates, int) and entry["step"] - updates != last:
      return (
        number,
        f"tells of {updates:,} updates up to step {entry['step']}, but the line before ends with step {last}",
      )
    last = entry["step"]
  return None
