"""The checkpoints of a run that is being trained: saving them, and resuming from the last one."""

import contextlib
import errno
import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import jax
import numpy as np
from etils import epath

from transformer_jax.model.params import by_name
from transformer_jax.runs import checkpoint_files as files
from transformer_jax.runs import reading, untrusted_arrays
from transformer_jax.runs.run_folder import CHECKPOINTS
from transformer_jax.runtime import devices, hosts
from transformer_jax.runtime.errors import first_line, os_error_number
from transformer_jax.runtime.progress import say
from transformer_jax.runtime.values import Json, PyTree
from transformer_jax.training.step import TrainState

# Errors that another attempt may not have, while a damaged file always has the same.
_OF_MACHINE = {
  errno.EIO,
  errno.ESTALE,
  errno.EMFILE,
  errno.ENFILE,
  errno.EACCES,
  errno.EPERM,
  errno.EAGAIN,
  errno.EBUSY,
  errno.ETIMEDOUT,
  errno.ECONNRESET,
  errno.ECONNREFUSED,
  errno.EHOSTUNREACH,
  errno.ENETUNREACH,
}
_OF_BUCKET = re.compile(r"\b(UNAVAILABLE|DEADLINE_EXCEEDED|PERMISSION_DENIED|UNAUTHENTICATED|ABORTED)\b")


class Restored(NamedTuple):
  """What a checkpoint holds: the state, and the numbers that the training loop continues from, if it has any."""

  state: TrainState
  log: Mapping[str, Json] | None


class Checkpoints:
  """The checkpoints of a run: the newest, the last `keep`, the best by validation, and all while somebody reads them.

  Every host has the whole state, so only the main one writes and reads. The others hear from it what it has read.
  """

  def __init__(self, workdir: epath.Path, keep: int):
    self._workdir = workdir
    self._writer: files.Writer | None = None  # on the other hosts
    if devices.is_main_host():
      _set_aside_damaged_losses(workdir)
      self._writer = files.Writer(workdir, keep)

  def save(
    self,
    state: TrainState,
    metrics: Mapping[str, float] | None,
    log: Mapping[str, Json] | None = None,
    *,
    planned: bool = True,
  ) -> None:
    """Writes the state in the background; a checkpoint counts only when it is whole.

    Args:
      state: what is saved; it names the step.
      metrics: the numbers that tell the best checkpoint, as `checkpoint_files.rank` takes them, if they were measured
        at this step.
      log: numbers that the loop goes on from.
      planned: False if only a signal asks for this checkpoint, so that an uninterrupted run has none.
    """
    step = int(state.step)
    if self._writer is None or step in self._writer.steps():
      return
    # Copies, as the next update reuses the memory; all arrays are on their way before the first is waited for.
    copies = jax.tree.map(np.array, jax.device_get(_items(state)))
    numbers = None if log is None else jax.tree.map(np.float64, log)
    self._writer.save(step, copies, numbers, metrics, planned=planned)

  def restore(self, abstract: TrainState) -> Restored | None:
    """The last state on every local device, or None at the beginning of a run.

    Nobody else writes there. So half-written checkpoints are deleted, and damaged ones that are newer than the one
    found are moved to `damaged/`: their steps can be saved again.

    Args:
      abstract: the shapes and types that it must have.

    Raises:
      RunError: there are checkpoints, and none can be read, or the newest not now; all are left as they are.
    """
    with hosts.collective_errors():
      found = self._read(self._writer, abstract) if self._writer else None
    heard = json.loads(hosts.broadcast_bytes(json.dumps(found and {"log": found.log}).encode()))
    if heard is None:
      return None
    state = found.state if found else jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), abstract)
    return Restored(devices.replicate(hosts.broadcast(state)), heard["log"])

  def _read(self, writer: files.Writer, abstract: TrainState) -> Restored | None:
    expected = _items(jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), abstract))  # to NumPy arrays

    def read(step: int) -> Restored:
      with _readable_now(files.folder_of(self._workdir, step)):
        return read_now(step)

    def read_now(step: int) -> Restored:
      for name, item in expected.items():
        untrusted_arrays.require_arrays(by_name(item), *files.headers(self._workdir, step, name))
      found = {name: files.read_item(self._workdir, step, name, item) for name, item in expected.items()}
      optimizer = found[files.OPTIMIZER]
      state = TrainState(optimizer["step"], found[files.PARAMS], optimizer["moments"], found.get(files.AVERAGE))
      return Restored(state, files.read_log(self._workdir, step))

    _delete_cut_short(self._workdir)
    look = reading.look(self._workdir, reading.LAST, read)
    found = reading.intact(self._workdir, look)
    for step in look.damaged:
      _set_aside(self._workdir, files.folder_of(self._workdir, step), str(step))
    writer.look_again()
    return None if found is None else found[1]

  def wait(self) -> None:
    """Waits until all that was saved is on the disk."""
    if self._writer:
      self._writer.wait()

  def close(self) -> None:
    """Waits for what is being saved; may be called again."""
    writer, self._writer = self._writer, None
    if writer:
      writer.close()


@contextlib.contextmanager
def _readable_now(folder: epath.Path) -> Iterator[None]:
  """Raises CannotRead for an error of the machine or a bucket in the body, which says nothing about the files."""
  try:
    yield
  except Exception as error:  # orbax may raise any
    if any(os_error_number(each) in _OF_MACHINE or _OF_BUCKET.search(str(each)) for each in _causes(error)):
      raise reading.CannotRead(
        f"{folder} cannot be read now: {first_line(error)}; nothing was changed, so give the same command again; if it "
        "stays so, move this checkpoint away, and the run goes on after the one before it"
      ) from error
    raise


def _causes(error: BaseException | None) -> Iterator[BaseException]:
  """An error, and those that it was made of."""
  while error is not None:
    yield error
    error = error.__cause__


def _items(state: TrainState) -> dict[str, PyTree]:
  """The parts of a checkpoint, each of which can be read without the others."""
  items = {files.PARAMS: state.params, files.OPTIMIZER: {"step": state.step, "moments": state.optimizer}}
  return items if state.average is None else items | {files.AVERAGE: state.average}


def _delete_cut_short(workdir: epath.Path) -> None:
  folder = workdir / CHECKPOINTS
  for path in folder.iterdir() if folder.exists() else ():
    if path.name.endswith(".orbax-checkpoint-tmp"):
      say(f"{path} was cut short while it was written, and is deleted")
      path.rmtree()


def _set_aside_damaged_losses(workdir: epath.Path) -> None:
  """Moves damaged validation losses away: orbax reads them all when it starts, and a checkpoint is usable without."""
  for step in files.finish_times(workdir):
    try:
      with _readable_now(files.folder_of(workdir, step)):
        reading.rank_of(workdir, step)
    except ValueError:
      folder = files.folder_of(workdir, step) / files.METRICS
      say(f"{folder} is damaged: the checkpoint of step {step} counts as one without a validation loss")
      _set_aside(workdir, folder, f"{step}.{files.METRICS}")


def _set_aside(workdir: epath.Path, path: epath.Path, name: str) -> None:
  (workdir / "damaged").mkdir(exist_ok=True)
  path.rename(workdir / "damaged" / f"{name}.{time.time_ns()}")
