"""The curves for TensorBoard."""

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from etils import epath

from transformer_jax.runtime.errors import RunError, writing

if TYPE_CHECKING:
  from tensorboardX import RecordWriter
  from tensorboardX.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue]

_SECONDS_IN_MEMORY = 60.0


class Curves:
  """Writes one file of points; TensorBoard reads all files of a folder as one run.

  The training thread itself writes the points, with tensorboardX's `RecordWriter`. tensorboardX's `SummaryWriter` would
  use a second thread: `flush` does not wait for it, so a kill loses flushed points, and a full disk ends it silently.

  The file is made with the first point, as tensorboardX imports torch where that is installed, which takes seconds: the
  first update does not wait for it.

  Args:
    folder: the folder of the files.
    step: the step from which the run resumes; TensorBoard ignores later points in earlier files.

  Raises:
    RunError: the disk is full; the methods raise it, too.
  """

  def __init__(self, folder: epath.Path, step: int):
    self._folder, self._step = folder, step
    self._writer: RecordWriter | None = None
    self._flushed = time.monotonic()
    with writing(folder):
      folder.mkdir(parents=True, exist_ok=True)

  def add(self, step: int, split: str, line: Mapping[str, object]) -> None:
    """Adds a point to each curve: the entries of `line` that are numbers."""
    from tensorboardX.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue]
    from tensorboardX.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]

    writer = self._writer or self._opened()
    numbers = {name: value for name, value in line.items() if isinstance(value, int | float)}
    points = [Summary.Value(tag=f"{split}/{name}", simple_value=value) for name, value in numbers.items()]
    self._write(writer, Event(wall_time=time.time(), step=step, summary=Summary(value=points)))
    if time.monotonic() - self._flushed > _SECONDS_IN_MEMORY:
      self.flush()

  def flush(self) -> None:
    """Waits until all points are on the disk."""
    self._flushed = time.monotonic()
    if self._writer is not None:
      with self._writing(self._writer):
        self._writer.flush()

  def close(self) -> None:
    if self._writer is not None:
      with self._writing(self._writer):
        self._writer.close()

  def _opened(self) -> "RecordWriter":
    """The writer of the file, which says where the run resumed."""
    from tensorboardX import RecordWriter
    from tensorboardX.proto.event_pb2 import Event, SessionLog  # pyright: ignore[reportAttributeAccessIssue]

    # The name has the step because two starts can fall into the same second.
    name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{self._step}"
    with writing(self._folder):
      self._writer = RecordWriter(str(self._folder / name))
    self._write(self._writer, Event(wall_time=time.time(), file_version="brain.Event:2"))
    start = SessionLog(status=SessionLog.START)
    self._write(self._writer, Event(wall_time=time.time(), step=self._step + 1, session_log=start))
    self.flush()
    return self._writer

  def _write(self, writer: "RecordWriter", event: "Event") -> None:
    with self._writing(writer):
      writer.write(event.SerializeToString())

  @contextmanager
  def _writing(self, writer: "RecordWriter") -> Iterator[None]:
    try:
      with writing(self._folder):
        yield
    except RunError:
      with suppress(OSError):  # otherwise Python would write again at its exit and report the error
        writer.close()
      raise
