"""The curves for TensorBoard."""

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
  """Writes one file of points; TensorBoard reads all files of a folder as one run.

  The training thread itself writes the points, with tensorboardX's `RecordWriter`. tensorboardX's `SummaryWriter` would
  use a second thread: `flush` does not wait for it, so a kill loses flushed points, and a full disk ends it silently.

  Args:
    folder: the folder of the files.
    step: the step from which the run resumes; TensorBoard ignores later points in earlier files.

  Raises:
    RunError: the disk is full; the methods raise it, too.
  """

  def __init__(self, folder: epath.Path, step: int):
    self._folder = folder
    # The name has the step because two starts can fall into the same second.
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
      with suppress(OSError):  # otherwise Python would write again at its exit and report the error
        self._writer.close()
      raise
