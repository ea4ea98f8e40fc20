"""TensorBoard's curves.

They are written by the thread that trains, unlike by tensorboardX's own
SummaryWriter, so that a full disk is an error of the run and not of a thread
that nobody asks.
"""

import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from etils import epath
from tensorboardX.proto.event_pb2 import Event, SessionLog  # pyright: ignore[reportAttributeAccessIssue]
from tensorboardX.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]
from tensorboardX.record_writer import RecordWriter, directory_check

from transformer_jax.runtime.errors import RunError, writing

_SECONDS_IN_MEMORY = 60.0


class Curves:
  """One file of points; TensorBoard reads all files of a folder as one run.

  Args:
    folder: of the files.
    step: the step that the run goes on from; TensorBoard forgets the points after it that earlier files have.

  Raises:
    RunError: the disk is full; so do the methods.
  """

  def __init__(self, folder: epath.Path, step: int):
    self._folder = folder
    # The step is in the name as two starts can fall into one second.
    name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{step}"
    with writing(folder):
      directory_check(str(folder))
      self._writer = RecordWriter(os.path.join(folder, name))
    self._write(Event(wall_time=time.time(), file_version="brain.Event:2"))
    self._write(Event(wall_time=time.time(), step=step + 1, session_log=SessionLog(status=SessionLog.START)))
    self.flush()

  def add(self, step: int, split: str, line: Mapping[str, Any]) -> None:
    """A point of each curve, from what is a number in `line`."""
    numbers = {name: value for name, value in line.items() if isinstance(value, int | float)}
    points = [Summary.Value(tag=f"{split}/{name}", simple_value=value) for name, value in numbers.items()]
    self._write(Event(wall_time=time.time(), step=step, summary=Summary(value=points)))
    if time.monotonic() - self._flushed > _SECONDS_IN_MEMORY:
      self.flush()

  def flush(self) -> None:
    """Until all points are on the disk."""
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


def read_points(folder: str | os.PathLike) -> dict[str, list[tuple[int, float]]]:
  """The points that TensorBoard shows: by the curve's name, (step, value) in the order of writing."""
  points: dict[str, list[tuple[int, float]]] = {}
  for file in sorted(epath.Path(folder).glob("events.out.tfevents.*")):
    for event in map(Event.FromString, _records(file.read_bytes())):
      if event.session_log.status == SessionLog.START:
        points = {name: [point for point in curve if point[0] < event.step] for name, curve in points.items()}
      for value in event.summary.value:
        points.setdefault(value.tag, []).append((event.step, value.simple_value))
  return points


def _records(content: bytes) -> Iterator[bytes]:
  """The records of a TFRecord file, each between its length and checksums; the last can be cut short."""
  start = 0
  while start + 12 <= len(content):
    end = start + 12 + int.from_bytes(content[start : start + 8], "little")
    if end + 4 > len(content):
      return
    yield content[start + 12 : end]
    start = end + 4
