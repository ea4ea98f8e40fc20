"""The checkpoints of a run, in the folder checkpoints/STEP. The only file that imports orbax.

params, optimizer   the state, and average, the moving one of params, if kept
sums                checksums of these
previous            the step of the checkpoint that was saved before
log                 of what the next line of the log is made so far
metrics             the validation loss, if it was measured
"""

import contextlib
import functools
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from logging import getLogger
from typing import Any, NamedTuple

import jax
import numpy as np
import orbax.checkpoint as ocp
from absl import logging
from etils import epath
from orbax.checkpoint.checkpoint_managers import preservation_policy

from transformer_jax.config import Config, serialization
from transformer_jax.runs import in_use
from transformer_jax.runs.checksums import checksums, fit
from transformer_jax.runs.run_folder import CHECKPOINTS
from transformer_jax.runtime import devices, hosts, untrusted
from transformer_jax.runtime.errors import InputError, RunError, first_line, is_out_of_memory, writing
from transformer_jax.runtime.progress import say
from transformer_jax.training.step import Params, TrainState, init_params

AVERAGE, LOG, PREVIOUS, SUMS = "average", "log", "previous", "sums"
# Training replaces a checkpoint in the time that it takes to write one.
_SECONDS_BETWEEN_LOOKS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)


class Restored(NamedTuple):
  """What was saved: the state, and the numbers that the log goes on from, if there were any."""

  state: TrainState
  log: Mapping[str, Any] | None


class _WhileRead:
  """A policy of orbax: while somebody reads, nothing is deleted."""

  def __init__(self, folder: epath.Path):
    self._folder = folder

  def should_preserve(self, checkpoints: Sequence[Any], *, context: Any) -> Sequence[bool]:
    del context
    return [in_use.is_read(self._folder)] * len(checkpoints)


class Checkpoints:
  """The checkpoints of a run: the last `keep` and the best by validation loss, and all while somebody reads them.

  Every host has the whole state, so that the main one alone writes and reads; the others hear from it what it has read.
  """

  def __init__(self, workdir: epath.Path, keep: int):
    def loss(metrics: dict[str, float]) -> float:
      return metrics["validation_loss"]

    best = preservation_policy.BestN(get_metric_fn=loss, reverse=True, n=1, keep_checkpoints_without_metrics=False)
    policy = preservation_policy.AnyPreservationPolicy(
      [preservation_policy.LatestN(keep), best, _WhileRead(workdir / CHECKPOINTS)]
    )
    alone = ocp.options.MultiprocessingOptions(primary_host=0, active_processes={0})
    options = ocp.CheckpointManagerOptions(
      preservation_policy=policy, best_fn=loss, best_mode="min", create=False, multiprocessing_options=alone
    )
    self._workdir = workdir
    self._manager: ocp.CheckpointManager | None = None  # on the other hosts
    if not devices.is_main_host():
      return
    _say_errors_once()
    _set_aside_damaged_losses(workdir)
    with writing(workdir / CHECKPOINTS):
      (workdir / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
      self._manager = ocp.CheckpointManager(workdir / CHECKPOINTS, options=options)

  def save(self, state: TrainState, validation_loss: float | None, log: Mapping[str, Any] | None = None) -> None:
    """Writes the state in the background; a checkpoint counts only when it is whole.

    Args:
      state: of the step to save.
      validation_loss: by which the best checkpoint is known, if it was measured at this step.
      log: numbers that the log goes on from.
    """
    step = int(state.step)
    if self._manager is None or step in self._manager.all_steps():
      return
    numbers = {} if log is None else {LOG: jax.tree.map(np.float64, log)}
    copies = jax.tree.map(np.array, _items(state))  # as the next update reuses the memory
    items: dict[str, Any] = {name: ocp.args.StandardSave(item) for name, item in (copies | numbers).items()}
    items[SUMS] = ocp.args.JsonSave({name: checksums(_by_name(item)) for name, item in copies.items()})
    items[PREVIOUS] = ocp.args.JsonSave({"step": max(self._manager.all_steps(), default=None)})
    metrics = None if validation_loss is None else {"validation_loss": validation_loss}
    with _saving(self._workdir):
      saved = self._manager.save(step, args=ocp.args.Composite(**items), metrics=metrics)
    if not saved:
      raise RunError(f"the checkpoint of step {step} was not written, as a later one exists: use another --workdir")

  def restore(self, abstract: TrainState) -> Restored | None:
    """The last state on every local device, or None at the beginning of a run.

    Args:
      abstract: the shapes and types that it must have.
    """
    with hosts.collective_errors():
      found = self._read(self._manager, abstract) if self._manager else None
    heard = json.loads(hosts.bytes_from_main(json.dumps(found and {"log": found.log}).encode()))
    if heard is None:
      return None
    state = found.state if found else jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), abstract)
    return Restored(devices.replicate(hosts.from_main(state)), heard["log"])

  def _read(self, manager: ocp.CheckpointManager, abstract: TrainState) -> Restored | None:
    expected = _items(jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), abstract))  # to NumPy arrays

    def read(step: int) -> Any:
      items = {name: ocp.args.StandardRestore(item) for name, item in expected.items()}
      for name, item in expected.items():
        untrusted.require_arrays(_by_name(item), *_headers(self._workdir, step, name))
      log = {LOG: ocp.args.StandardRestore()} if (self._workdir / CHECKPOINTS / str(step) / LOG).exists() else {}
      restored: Any = manager.restore(step, args=ocp.args.Composite(**items, **log))
      for name in items:
        _require_sums(self._workdir, step, name, restored[name])
      return restored

    found = newest_whole(self._workdir, read, resuming=True)
    manager.reload()  # what was set aside is no checkpoint any more
    if found is None:
      return None
    _, restored = found
    state = TrainState(
      restored.optimizer["step"], restored.params, restored.optimizer["moments"], restored.get(AVERAGE)
    )
    return Restored(state, jax.tree.map(float, restored.get(LOG)))

  def wait(self) -> None:
    """Until what was saved is on disk."""
    if self._manager is None:
      return
    with _saving(self._workdir):
      self._manager.wait_until_finished()
      self._manager.check_for_errors()

  def close(self) -> None:
    """Waits for what is being saved; may be called again."""
    manager, self._manager = self._manager, None
    if manager:
      with _saving(self._workdir):
        manager.close()


def newest_whole(workdir: epath.Path, read: Callable[[int], Any], *, resuming: bool = False) -> tuple[int, Any] | None:
  """The newest step that can be read, and what `read` gives of it; None where there is no checkpoint.

  Args:
    workdir: the run folder.
    read: reads one step.
    resuming: nobody else writes there. What was cut short is deleted, and damaged checkpoints that are newer than the
      one found are moved to `damaged/`, so that their steps can be saved again.

  Raises:
    RunError: there are checkpoints, and none can be read; all are left as they are.
  """
  if resuming:
    for cut_short in (workdir / CHECKPOINTS).glob("*.orbax-checkpoint-tmp"):
      say(f"{cut_short} was cut short while it was written, and is deleted")
      cut_short.rmtree()
    found, failed = _look(workdir, read)
  else:
    found, failed = None, {}
    for replaced in looks(workdir):
      found, failed = _look(workdir, read)
      if not failed or not replaced():
        break
  for step, reason in failed.items():
    say(f"the checkpoint of step {step} is damaged and not used: {reason}")
  if found is None and failed:
    raise RunError(f"every checkpoint in {workdir} is damaged, or cannot be read here")
  if resuming:
    _set_aside(workdir, list(failed))
  return found


def _look(workdir: epath.Path, read: Callable[[int], Any]) -> tuple[tuple[int, Any] | None, dict[int, str]]:
  """The newest step that can be read, and what `read` gives of it; why those that are newer cannot be read."""
  failed: dict[int, str] = {}
  for step in sorted(finished(workdir), reverse=True):
    try:
      return (step, read(step)), failed
    except Exception as error:  # damaged or hostile files can make orbax raise any
      if is_out_of_memory(error):
        raise
      failed[step] = first_line(error)
  return None, failed


def looks(workdir: epath.Path) -> Iterator[Callable[[], bool]]:
  """Several looks at the checkpoints of a run that somebody else may train meanwhile; leave the loop at a good one.

  Yields:
    A function that says whether checkpoints came or went since the look began, so that what could not be read may be
    whole in the next look.

  Raises:
    RunError: from that function, where it was so in every look.
  """
  with in_use.reading(workdir / CHECKPOINTS):
    for seconds in (*_SECONDS_BETWEEN_LOOKS, None):
      before = _names(workdir)

      def replaced(before: set[str] = before, last: bool = seconds is None) -> bool:
        if _names(workdir) == before:
          return False
        if last:
          raise RunError(
            f"no checkpoint in {workdir} could be read, as training replaces them before they are: "
            "give the same command again, or raise config.train.save_every or config.train.keep"
          )
        return True

      yield replaced
      time.sleep(seconds or 0)


def _names(workdir: epath.Path) -> set[str]:
  """Of the folders of finished checkpoints."""
  folder = workdir / CHECKPOINTS
  return {path.name for path in folder.iterdir() if path.name.isdigit()} if folder.exists() else set()


def _set_aside_damaged_losses(workdir: epath.Path) -> None:
  """Orbax reads every checkpoint's validation loss when it begins; a checkpoint is as good without it."""
  for step in finished(workdir):
    folder = workdir / CHECKPOINTS / str(step) / "metrics"
    try:
      float(json.loads((folder / "metrics").read_text())["validation_loss"])
    except FileNotFoundError:
      continue
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
      say(f"{folder} is damaged: the checkpoint of step {step} counts as one without a validation loss")
      _move_to_damaged(workdir, folder, f"{step}.metrics")


def _headers(workdir: epath.Path, step: int, item: str) -> tuple[dict[str, Any], int]:
  """What the arrays of an item of a checkpoint say of themselves, of which none is read, and the bytes of its files."""
  folder = workdir / CHECKPOINTS / str(step) / item
  size = untrusted.size_on_disk(folder)
  with _quiet_orbax(), contextlib.closing(ocp.StandardCheckpointHandler()) as handler:
    return _by_name(handler.metadata(folder).tree), size


def _by_name(tree: Any) -> dict[str, Any]:
  """The leaves, such as `decoder/layers_0/norm/scale`, for trees of dicts as for those of classes."""
  return {
    "/".join(str(getattr(key, "name", getattr(key, "key", getattr(key, "idx", key)))) for key in path): leaf
    for path, leaf in jax.tree.leaves_with_path(tree)
  }


def _require_sums(workdir: epath.Path, step: int, item: str, restored: Any) -> None:
  """Raises ValueError if an item's numbers are not those that were saved; older checkpoints do not tell."""
  path = workdir / CHECKPOINTS / str(step) / SUMS
  if path.exists() and not fit(untrusted.read_json(path / "metadata").get(item), _by_name(restored)):
    raise ValueError(f"{item} holds other numbers than were saved")


def _set_aside(workdir: epath.Path, steps: list[int]) -> None:
  for step in steps:
    _move_to_damaged(workdir, workdir / CHECKPOINTS / str(step), str(step))


def _move_to_damaged(workdir: epath.Path, path: epath.Path, name: str) -> None:
  (workdir / "damaged").mkdir(exist_ok=True)
  path.rename(workdir / "damaged" / f"{name}.{time.time_ns()}")


def _items(state: TrainState) -> dict[str, Any]:
  """The parts of a checkpoint, each of which can be read without the others."""
  items = {"params": state.params, "optimizer": {"step": state.step, "moments": state.optimizer}}
  return items if state.average is None else items | {AVERAGE: state.average}


@contextlib.contextmanager
def _saving(workdir: epath.Path) -> Iterator[None]:
  """Makes of what the disk refuses a RunError; the save that failed may be an earlier one, in the background."""
  try:
    yield
  except (OSError, ValueError) as error:  # tensorstore raises a ValueError that carries the system's error number
    found = re.search(r"os_error_code='(\d+)'", str(error))
    reason = os.strerror(int(found[1])) if found else getattr(error, "strerror", None) or first_line(error)
    last = max(finished(workdir), default=None)
    rest = (
      "there is none before it" if last is None else f"that of step {last} is whole, and the same command goes on there"
    )
    raise RunError(f"a checkpoint in {workdir} could not be written: {reason}; {rest}") from error


@functools.cache
def _say_errors_once() -> None:
  """Keeps Python from printing what orbax leaves behind when it raises the first of many errors.

  Where one array cannot be written or read, the errors of others are never asked
  for, and some come when the event loop is closed: each would be a traceback.
  """
  getLogger("asyncio").setLevel("CRITICAL")
  before = sys.unraisablehook

  def hook(unraisable: Any) -> None:
    if str(unraisable.exc_value) != "Event loop is closed":
      before(unraisable)

  sys.unraisablehook = hook


def item_to_decode_with(workdir: epath.Path, step: int, config: Config) -> str:
  """Which item of a checkpoint has the parameters to decode with: their moving average, if it was saved.

  Raises:
    ValueError: it was saved, and is gone.
  """
  folder = workdir / CHECKPOINTS / str(step)
  if (folder / AVERAGE).exists():
    return AVERAGE
  if (folder / SUMS).exists():
    saved = AVERAGE in untrusted.read_json(folder / SUMS / "metadata")
  else:  # an older checkpoint; one that `average` wrote has no optimizer
    saved = config.train.ema_decay > 0 and (folder / "optimizer").exists()
  if saved:
    raise ValueError(f"{folder / AVERAGE}, the moving average of the parameters, is gone")
  return "params"


def params_like(workdir: epath.Path, step: int, item: str, config: Config) -> Params:
  """Shapes and types of a config's parameters, before memory is taken for them.

  Raises:
    ValueError: the checkpoint's `item` holds others.
  """
  headers, size = _headers(workdir, step, item)
  untrusted.require_layers(serialization.to_dict(config.model), len(headers))
  abstract = jax.eval_shape(lambda: init_params(config))
  untrusted.require_arrays(_by_name(abstract), headers, size)
  return abstract


def finished(workdir: epath.Path) -> dict[int, datetime]:
  """The steps of a run's finished checkpoints, oldest first, and when each was finished.

  Raises:
    RunError: a checkpoint's description says no such thing.
  """
  before = _names(workdir)
  if not before:
    return {}
  try:
    with _quiet_orbax():
      found = sorted(ocp.path.step.standard_name_format().find_all(workdir / CHECKPOINTS), key=lambda each: each.step)
      return {checkpoint.step: checkpoint.commit_timestamp for checkpoint in found}
  except Exception as error:  # as damage makes orbax raise it
    if _names(workdir) != before:  # training deleted one meanwhile
      return finished(workdir)
    reason = first_line(error)
    raise RunError(f"a _CHECKPOINT_METADATA in {workdir / CHECKPOINTS} is damaged, delete it: {reason}") from error


def saved_before(workdir: epath.Path, step: int) -> int | None:
  """The step of the checkpoint that was saved before this one, which may be gone; None where there was none.

  Raises:
    FileNotFoundError: an older checkpoint, which does not tell.
    InputError: what tells it is damaged.
  """
  path = workdir / CHECKPOINTS / str(step) / PREVIOUS / "metadata"
  values = untrusted.read_json(path)
  if not isinstance(values, dict) or not isinstance(values.get("step", ""), int | None):
    raise InputError(f"{path} does not say which checkpoint was saved before: copy it back, or delete {path.parent}")
  return values["step"]


def read_params(workdir: epath.Path, config: Config, step: int) -> Params:
  """The parameters of one checkpoint, not their moving average, as NumPy arrays."""
  abstract = params_like(workdir, step, "params", config)  # NumPy arrays, as it names no device
  return read_item(workdir, step, "params", abstract)


def write_params(workdir: epath.Path, step: int, params: Params) -> None:
  """Writes a checkpoint of parameters alone: enough to decode, not to train on.

  Raises:
    RunError: the disk is full.
  """
  with _quiet_orbax(), _saving(workdir), ocp.CheckpointManager(workdir / CHECKPOINTS) as manager:
    sums = ocp.args.JsonSave({"params": checksums(_by_name(params))})
    manager.save(step, args=ocp.args.Composite(params=ocp.args.StandardSave(params), **{SUMS: sums}))
    manager.wait_until_finished()
    manager.check_for_errors()


def read_item(workdir: epath.Path, step: int, item: str, abstract: Any) -> Any:
  """One item of a checkpoint, of these shapes, types and placement; nothing else of the folder is looked at."""
  with _quiet_orbax(), contextlib.closing(ocp.StandardCheckpointHandler()) as handler:
    restored = handler.restore(workdir / CHECKPOINTS / str(step) / item, args=ocp.args.StandardRestore(abstract))
  _require_sums(workdir, step, item, restored)
  return restored


@contextlib.contextmanager
def _quiet_orbax() -> Iterator[None]:
  """Without warnings that what is opened to be read cannot be written, nor what a damaged file holds."""
  _say_errors_once()
  before = logging.get_verbosity()
  logging.set_verbosity(logging.FATAL)
  try:
    yield
  finally:
    logging.set_verbosity(before)
