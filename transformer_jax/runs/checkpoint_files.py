"""The files of checkpoints, in the folder checkpoints/STEP of a run. The only file that imports orbax.

params, optimizer   the state, and average, the moving one of params, if kept
sums                checksums of these
previous            whether it was planned, and the step of the planned one before it
log                 what the next line of the log is made of so far, and other numbers that the loop goes on from
metrics             the validation loss, if it was measured, and a score if that tells the best checkpoint
"""

import contextlib
import functools
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime
from logging import getLogger
from typing import Any, NamedTuple

import jax
import orbax.checkpoint as ocp
from absl import logging
from etils import epath
from orbax.checkpoint.checkpoint_managers import preservation_policy

from transformer_jax.model.params import Params, by_name
from transformer_jax.runs import locks, untrusted_arrays
from transformer_jax.runs.checksums import checksums, fit
from transformer_jax.runs.run_folder import CHECKPOINTS, checkpoint_names
from transformer_jax.runtime import untrusted
from transformer_jax.runtime.errors import InputError, RunError, first_line, os_error_number, writing
from transformer_jax.runtime.values import Json, PyTree

PARAMS, OPTIMIZER, AVERAGE = "params", "optimizer", "average"
SUMS, PREVIOUS, LOG, METRICS = "sums", "previous", "log", "metrics"
_MOST_LOGGED = 1000  # numbers
_DESCRIPTION = "_CHECKPOINT_METADATA"
LOSS, SCORE = "validation_loss", "score"


def rank(metrics: Mapping[str, float]) -> float:
  """The number that is lowest for the best checkpoint: minus its `SCORE` or else its `LOSS`, inf where that is NaN."""
  number = -metrics[SCORE] if SCORE in metrics else metrics[LOSS]
  return math.inf if math.isnan(number) else number  # a NaN would be the best, as nothing is less than it


def folder_of(workdir: epath.Path, step: int) -> epath.Path:
  """The folder of a run's checkpoint."""
  return workdir / CHECKPOINTS / str(step)


def finish_times(workdir: epath.Path) -> dict[int, datetime]:
  """The steps of a run's finished checkpoints, oldest first, and when each was finished.

  Raises:
    RunError: a checkpoint's description says no such thing.
  """
  before = checkpoint_names(workdir)
  if not before:
    return {}
  for name in before:
    _require_small(folder_of(workdir, int(name)) / _DESCRIPTION)
  try:
    with _quiet():
      found = sorted(ocp.path.step.standard_name_format().find_all(workdir / CHECKPOINTS), key=lambda each: each.step)
      return {checkpoint.step: checkpoint.commit_timestamp for checkpoint in found}
  except Exception as error:  # as damage makes orbax raise it
    if checkpoint_names(workdir) != before:  # training deleted one meanwhile
      return finish_times(workdir)
    step = next((name for name in sorted(before, key=int) if not _is_described(workdir, int(name))), "*")
    file = workdir / CHECKPOINTS / step / _DESCRIPTION
    raise RunError(f"{file} is damaged, delete it: {first_line(error)}") from error


def _require_small(description: epath.Path) -> None:
  """Raises RunError for a description that orbax would read whole, whatever its size."""
  try:
    size = description.stat().length
  except OSError:  # training deletes the checkpoint, or it has none
    return
  if size > untrusted.LARGEST_JSON:
    raise RunError(f"{description} is damaged, delete it: it has more than {untrusted.LARGEST_JSON:,} bytes")


def _is_described(workdir: epath.Path, step: int) -> bool:
  """Whether orbax can read the description of a checkpoint."""
  try:
    _ = ocp.path.step.standard_name_format().find_step(workdir / CHECKPOINTS, step).commit_timestamp
  except Exception:  # as damage makes orbax raise it
    return False
  return True


def headers(workdir: epath.Path, step: int, item: str) -> tuple[dict[str, PyTree], int]:
  """The headers of an item's arrays by name, and the bytes of its files; no array is read."""
  folder = folder_of(workdir, step) / item
  size = untrusted_arrays.size_on_disk(folder)
  with _quiet(), contextlib.closing(ocp.StandardCheckpointHandler()) as handler:
    return by_name(handler.metadata(folder).tree), size


def read_item(workdir: epath.Path, step: int, item: str, abstract: PyTree) -> PyTree:
  """One item of a checkpoint, of these shapes, types and placement; NumPy arrays where they name no device.

  Raises:
    ValueError: its numbers are not those that were saved.
  """
  restored = _restored(workdir, step, item, abstract)
  path = folder_of(workdir, step) / SUMS  # which older checkpoints do not have
  if path.exists() and not fit(untrusted.read_json(path / "metadata").get(item), by_name(restored)):
    raise ValueError(f"{item} holds other numbers than were saved")
  return restored


def read_log(workdir: epath.Path, step: int) -> Mapping[str, Json] | None:
  """The numbers that the log continues from, if the checkpoint has any.

  Raises:
    ValueError: it has something else than a few numbers, which is found before anything is read.
  """
  if not (folder_of(workdir, step) / LOG).exists():
    return None
  arrays, _ = headers(workdir, step, LOG)
  if len(arrays) > _MOST_LOGGED or any(array.shape != () for array in arrays.values()):
    raise ValueError(f"{LOG} has something else than the numbers of a line of the log")
  return jax.tree.map(float, _restored(workdir, step, LOG, None))


def _restored(workdir: epath.Path, step: int, item: str, abstract: PyTree) -> PyTree:
  with _quiet(), contextlib.closing(ocp.StandardCheckpointHandler()) as handler:
    return handler.restore(folder_of(workdir, step) / item, args=ocp.args.StandardRestore(abstract))


def write_params(workdir: epath.Path, step: int, params: Params) -> None:
  """Writes a checkpoint of parameters alone: enough to decode, not to train on.

  Raises:
    RunError: the disk is full.
  """
  with _quiet(), _saving(workdir), ocp.CheckpointManager(workdir / CHECKPOINTS) as manager:
    manager.save(step, args=_with_sums({PARAMS: params}))
    manager.wait_until_finished()
    manager.check_for_errors()


def _with_sums(arrays: Mapping[str, PyTree], **others: ocp.args.CheckpointArgs) -> ocp.args.Composite:
  """What `CheckpointManager.save` takes: trees of arrays, their checksums, and other items."""
  items = {name: ocp.args.StandardSave(tree) for name, tree in arrays.items()}
  sums = ocp.args.JsonSave({name: checksums(by_name(tree)) for name, tree in arrays.items()})
  return ocp.args.Composite(**items, **{SUMS: sums}, **others)


class Previous(NamedTuple):
  """What a checkpoint says of those before it.

  Attributes:
    step: of the planned one that was saved before, even if it is deleted; None if this is the first.
    planned: whether this one is planned: an uninterrupted run has it as well, and not only a run that a signal stopped.
  """

  step: int | None
  planned: bool


def read_previous(workdir: epath.Path, step: int) -> Previous:
  """What a checkpoint says of those before it.

  Raises:
    FileNotFoundError: the checkpoint is of an older version, which does not record it.
    InputError: the record is damaged.
  """
  path = folder_of(workdir, step) / PREVIOUS / "metadata"
  values = untrusted.read_json(path)
  if not isinstance(values, dict) or not isinstance(values.get("step", ""), int | None):
    raise InputError(f"{path} does not say which checkpoint was saved before: copy it back, or delete {path.parent}")
  return Previous(values["step"], values.get("planned", True) is not False)  # older versions record the step alone


class Writer:
  """Writes the checkpoints of a run, and keeps some.

  It keeps the newest, the last `keep` that are planned, the best by validation, and all that somebody reads.

  Raises:
    RunError: the disk refuses it; so do the methods.
  """

  def __init__(self, workdir: epath.Path, keep: int):
    self._unplanned = {step for step in finish_times(workdir) if not is_planned(workdir, step)}
    best = preservation_policy.BestN(get_metric_fn=rank, reverse=True, n=1, keep_checkpoints_without_metrics=False)
    policy = preservation_policy.AnyPreservationPolicy(
      [_LastPlanned(keep, self._unplanned), best, _WhileRead(workdir / CHECKPOINTS)]
    )
    alone = ocp.options.MultiprocessingOptions(primary_host=0, active_processes={0})
    options = ocp.CheckpointManagerOptions(
      preservation_policy=policy, best_fn=rank, best_mode="min", create=False, multiprocessing_options=alone
    )
    self._workdir = workdir
    _say_errors_once()
    with writing(workdir / CHECKPOINTS):
      (workdir / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
      self._manager = ocp.CheckpointManager(workdir / CHECKPOINTS, options=options)

  def steps(self) -> Sequence[int]:
    """The steps of the checkpoints that are there, or are being written."""
    return self._manager.all_steps()

  def save(
    self,
    step: int,
    arrays: Mapping[str, PyTree],
    log: Mapping[str, Json] | None,
    metrics: Mapping[str, float] | None,
    *,
    planned: bool = True,
  ) -> None:
    """Writes a checkpoint in the background; it counts only when it is whole."""
    previous = Previous(max({*self.steps()} - self._unplanned, default=None), planned)
    if planned:
      self._unplanned.discard(step)  # of a damaged one that was moved away
    else:
      self._unplanned.add(step)
    others: dict[str, ocp.args.CheckpointArgs] = {} if log is None else {LOG: ocp.args.StandardSave(log)}
    others[PREVIOUS] = ocp.args.JsonSave(previous._asdict())
    with _saving(self._workdir):
      saved = self._manager.save(step, args=_with_sums(arrays, **others), metrics=metrics)
    if not saved:
      raise RunError(f"the checkpoint of step {step} was not written, as a later one exists: use another --workdir")

  def look_again(self) -> None:
    """Forgets the checkpoints that others have moved away."""
    self._manager.reload()

  def wait(self) -> None:
    """Waits until all that was saved is on the disk."""
    with _saving(self._workdir):
      self._manager.wait_until_finished()
      self._manager.check_for_errors()

  def close(self) -> None:
    """Waits for what is being saved."""
    with _saving(self._workdir):
      self._manager.close()


def is_planned(workdir: epath.Path, step: int) -> bool:
  """Whether a checkpoint is planned; one that does not say it counts as such."""
  try:
    return read_previous(workdir, step).planned
  except (FileNotFoundError, InputError):
    return True


class _LastPlanned:
  """A policy of orbax: keeps the newest checkpoint and the last `keep` that are planned.

  As long as there are fewer planned ones, the newest of the others fill their number, so that one that is damaged has
  another before it.
  """

  def __init__(self, keep: int, unplanned: Set[int]):
    self._keep, self._unplanned = keep, unplanned

  def should_preserve(self, checkpoints: Sequence[Any], *, context: object) -> Sequence[bool]:
    del context
    steps = [checkpoint.step for checkpoint in checkpoints]
    planned = [step for step in steps if step not in self._unplanned][-self._keep :]
    others = sorted(self._unplanned & {*steps}, reverse=True)[: self._keep - len(planned)]
    kept = {*steps[-1:], *planned, *others}
    return [step in kept for step in steps]


class _WhileRead:
  """A policy of orbax: while somebody reads, nothing is chosen to be deleted.

  orbax asks when a save begins, and deletes at its end. So a reader that comes in between must look again.
  """

  def __init__(self, folder: epath.Path):
    self._folder = folder

  def should_preserve(self, checkpoints: Sequence[Any], *, context: object) -> Sequence[bool]:
    del context
    return [locks.is_read(self._folder)] * len(checkpoints)


@contextlib.contextmanager
def _saving(workdir: epath.Path) -> Iterator[None]:
  """Turns an error of the disk into a RunError; it may be that of an earlier save, which ran in the background."""
  try:
    yield
  except (OSError, ValueError) as error:  # tensorstore raises a ValueError that carries the system's error number
    number = os_error_number(error)
    reason = os.strerror(number) if number else first_line(error)
    last = None
    with contextlib.suppress(InputError, RunError):  # the folder may be gone as well
      last = max(finish_times(workdir), default=None)
    rest = (
      "there is none before it" if last is None else f"that of step {last} is whole: the same command resumes from it"
    )
    raise RunError(f"a checkpoint in {workdir} could not be written: {reason}; {rest}") from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
  """Mutes warnings that a folder opened for reading cannot be written, and those with the content of damaged files."""
  _say_errors_once()
  before = logging.get_verbosity()
  logging.set_verbosity(logging.FATAL)
  try:
    yield
  finally:
    logging.set_verbosity(before)


@functools.cache
def _say_errors_once() -> None:
  """Keeps Python from printing the other errors when orbax raises the first of several.

  Where one array cannot be written or read, the errors of others are never asked
  for, and some come when the event loop is closed: each would be a traceback.
  """
  getLogger("asyncio").setLevel("CRITICAL")
  before = sys.unraisablehook

  def hook(unraisable: "sys.UnraisableHookArgs") -> None:
    if str(unraisable.exc_value) != "Event loop is closed":
      before(unraisable)

  sys.unraisablehook = hook
