"""TensorBoard's curves."""

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from etils import epath
from tensorboardX import RecordWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog  # pyright: ignore[reportAttributeAccessIssue]
from tensorboardX.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]

from transformer_jax.runtime.errors import RunError, writing

_SECONDS_IN_MEMORY = 60.0


class Curves:
  """One file of points; TensorBoard reads all files of a folder as one run.

  The thread that trains writes them, with tensorboardX's `RecordWriter`. Its `SummaryWriter` hands points to a thread
  of its own: `flush` does not wait for that thread, so a kill loses points that were flushed, and a full disk ends
  that thread in silence.

  Args:
    folder: where the files are.
    step: the step that the run goes on from; TensorBoard forgets the points after it that earlier files have.

  Raises:
    RunError: the disk is full; so do the methods.
  """

  def __init__(self, folder: epath.Path, step: int):
    self._folder = folder
    # The step is in the name as two starts can fall into one second.
    name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{step}"
    with writing(folder):
      folder.mkdir(parents=True, exist_ok=True)
      self._writer = RecordWriter(str(folder / name))
    self._write(Event(wall_time=time.time(), file_version="brain.Event:2"))
    self._write(Event(wall_time=time.time(), step=step + 1, session_log=SessionLog(status=SessionLog.START)))
    self.flush()

  def add(self, step: int, split: str, line: Mapping[str, object]) -> None:
    """Adds a point to each curve: the entries of `line` that are numbers."""
    numbers = {name: value for name, value in line.items() if isinstance(value, int | float)}
    points = [Summary.Value(tag=f"{split}/{name}", simple_value=value) for name, value in numbers.items()]
    self._write(Event(wall_time=time.time(), step=step, summary=Summary(value=points)))
    if time.monotonic() - self._flushed > _SECONDS_IN_MEMORY:
      self.flush()

  def flush(self) -> None:
    """Waits until all points are on the disk."""
    self._flushed = time.monotonic()
    with self._writing():
      self._writer.flush()

  def close(self) -> None:
    with self._writing():
      self._writer.close()

  def _write(self, event: Event) -> None:
    with self._writing():
      self._writer.write(event.SerializeToString())

  @contextmanager
  def _writing(self) -> Iterator[None]:
    try:
      with writing(self._folder):
        yield
    except RunError:
      with suppress(OSError):  # or Python would try once more when it ends, and complain
        self._writer.close()
      raise
