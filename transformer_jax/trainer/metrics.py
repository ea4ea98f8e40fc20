"""The metrics of training: `metrics.jsonl`, TensorBoard's curves, and the sums between two lines of the log."""

import json
import operator
import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields

import jax
from etils import epath

from transformer_jax.runs.metrics_file import FILE, read_lines
from transformer_jax.runtime import devices
from transformer_jax.runtime.errors import writing
from transformer_jax.runtime.files import write_atomically
from transformer_jax.runtime.progress import say
from transformer_jax.runtime.values import Json, JsonObject, PyTree
from transformer_jax.runtime.wording import counted
from transformer_jax.trainer.curves import Curves
from transformer_jax.training.step import Metrics
from transformer_jax.training.sums import Sums, means


@dataclass
class MetricsAccumulator:
  """The sums over an interval: the updates since the last line of the log.

  A checkpoint holds them, so that a run that was stopped between two lines writes
  the same lines as an uninterrupted one.

  Attributes:
    sums: the sums over the updates that were not skipped.
    gradient_norm: the norm of the gradients that last changed the parameters.
    learning_rate: the learning rate of the last update.
    updates: the number of updates.
    skipped: the number of updates that changed nothing because their loss or gradients were not finite.
    skipped_in_a_row: the number of consecutive skipped updates up to the last one; it can exceed the interval.
    most_skipped: the largest value of `skipped_in_a_row` in this interval.
    most_skipped_to: the number of the update with this value in this interval, from 1.
    seconds: the time that the updates took.
  """

  sums: PyTree = field(default_factory=lambda: _sums({}))
  gradient_norm: float = 0.0
  learning_rate: float = 0.0
  updates: int = 0
  skipped: int = 0
  skipped_in_a_row: int = 0
  most_skipped: int = 0
  most_skipped_to: int = 0
  seconds: float = 0.0

  def add(self, metrics: Metrics) -> None:
    """Adds the metrics of one update, which `train_step` returned."""
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
    """The line of the log; the means are left out if all updates were skipped."""
    changed = means(self.sums) | {"gradient_norm": self.gradient_norm} if self.skipped < self.updates else {}
    return changed | {
      "learning_rate": self.learning_rate,
      "updates": self.updates,
      "skipped": self.skipped,
      "target_tokens": self.sums.tokens,
      "seconds": self.seconds,
      "tokens_per_second": self.sums.tokens / self.seconds,
    }

  def to_dict(self) -> JsonObject:
    """The values that a checkpoint holds."""
    return asdict(self)

  @classmethod
  def from_dict(cls, values: Mapping[str, Json], losses: Collection[str]) -> "MetricsAccumulator":
    """The inverse of `to_dict`; the numbers may be of any type.

    Args:
      values: the values.
      losses: the names of the run's losses besides the first.

    Raises:
      ValueError: the values are those of other losses.
    """
    numbers: JsonObject = {f.name: type(f.default)(values.get(f.name, 0)) for f in fields(cls) if f.name != "sums"}
    found = cls(sums=_sums(values["sums"]), **numbers)
    if found.updates and set(found.sums.others) != set(losses):
      raise ValueError(f"the sums are of {sorted(found.sums.others)}, but the run has {sorted(losses)}")
    return found


def _sums(values: Mapping[str, Json]) -> PyTree:
  """`Sums` of Python numbers: their total does not depend on how often they are saved in between."""
  others = {name: _sums(other) for name, other in (values.get("others") or {}).items()}
  numbers: JsonObject = {f.name: float(values.get(f.name, 0)) for f in fields(Sums) if f.name != "others"}
  return Sums(**numbers, others=others)


class MetricsLog:
  """Appends lines to `metrics.jsonl` and points to TensorBoard's curves.

  A run that resumes at a step deletes the lines after it and writes them again.
  So the file has the same lines as that of an uninterrupted run.

  Args:
    workdir: the run folder.
    step: the step from which the run resumes.
    interval: the sums over the updates up to that step that are in no line yet; None if they are not known.

  Attributes:
    most_skipped: the first and the last step of the longest series of skipped updates in the last flushed interval,
      with those directly before it; None if there was none.

  Raises:
    InputError: a line of `metrics.jsonl` is malformed.
    RunError: the disk is full; the methods raise it, too.
  """

  def __init__(self, workdir: epath.Path, step: int, interval: MetricsAccumulator | None):
    self._path = workdir / FILE
    self._pending: list[Metrics] = []
    self._interval = interval or MetricsAccumulator()
    self.most_skipped: tuple[int, int] | None = None
    self._since = time.perf_counter()
    self._curves = None
    if devices.is_main_host():
      _cut_back(self._path, step, logged=step - interval.updates if interval else 0)
      self._curves = Curves(workdir / "tensorboard", step)

  def add(self, metrics: Metrics) -> None:
    """Keeps the metrics of an update on the device, without waiting for them."""
    self._pending.append(metrics)

  def wait(self, in_flight: int) -> None:
    """Waits until at most the last `in_flight` updates are unfinished."""
    if len(self._pending) > in_flight:
      jax.block_until_ready(self._pending[-1 - in_flight])

  def interval(self) -> MetricsAccumulator:
    """The sums over the updates since the last flush; waits for them, and until all points are on the disk."""
    self._add_up()
    if self._curves is not None:
      self._curves.flush()
    return self._interval

  def flush(self, step: int, schedules: Mapping[str, float]) -> dict[str, float]:
    """Writes one line for all updates since the last flush, with these numbers too, and returns it; waits for them."""
    self._add_up()
    line = {**self._interval.line(), **schedules}
    last = step - self._interval.updates + self._interval.most_skipped_to
    skipped = self._interval.most_skipped
    self.most_skipped = (last - skipped + 1, last) if skipped else None
    self._interval = MetricsAccumulator(skipped_in_a_row=self._interval.skipped_in_a_row)
    self.write(step, "train", line)
    return line

  def write(self, step: int, split: str, line: JsonObject) -> None:
    """Appends `line`; `split` names its data."""
    if self._curves is None:
      return
    with self.clock_stopped():  # the first point waits for an import
      with writing(self._path):
        append(self._path, json.dumps({"step": step, "split": split, **line}) + "\n")
      self._curves.add(step, split, line)

  @contextmanager
  def clock_stopped(self) -> Iterator[None]:
    """Excludes the time of the body from the training time."""
    self._add_up()
    try:
      yield
    finally:  # a checkpoint is saved after an error, too
      self._since = time.perf_counter()

  def close(self) -> None:
    """Closes the curves; it may be called more than once."""
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
  """Appends to a file; a file on `gs://`, which cannot be appended to, is written again."""
  if "://" in os.fspath(path):
    path.write_text((path.read_text() if path.exists() else "") + text)
  else:
    with path.open("a") as file:
      file.write(text)


def _cut_back(path: epath.Path, step: int, logged: int) -> None:
  """Deletes the lines after `step`; reports if training lines up to step `logged` are missing or changed."""
  lines = read_lines(path)
  kept = [line for line, entry in lines if entry["step"] <= step]
  if path.exists():
    write_atomically(path, b"".join(line + b"\n" for line in kept))
  trained = [(n, e) for n, (_, e) in enumerate(lines, 1) if e["step"] <= step and e["split"] == "train"]
  if max((entry["step"] for _, entry in trained), default=0) < logged:
    say(f"{path} has no line of step {logged}, which the run had logged: what is missing there stays missing")
  elif gap := _gap(trained):
    why = "lines were deleted or changed, or the run went on from a checkpoint without its log"
    say(f"{path}, line {gap[0]} {gap[1]}: {why}, and this stays so")


def _gap(trained: list[tuple[int, JsonObject]]) -> tuple[int, str] | None:
  """The number of the first training line that does not continue the line before it, and how it differs."""
  last = 0
  for number, entry in trained:
    updates = entry.get("updates")
    if isinstance(updates, int) and entry["step"] - updates != last:
      return (
        number,
        f"tells of {counted(updates, 'updates')} up to step {entry['step']}, but the line before ends with step {last}",
      )
    last = entry["step"]
  return None
