"""Reads the points that a run wrote for TensorBoard."""

import os
from collections.abc import Iterator
from pathlib import Path

from tensorboardX.proto.event_pb2 import Event, SessionLog


def read_points(folder: str | os.PathLike) -> dict[str, list[tuple[int, float]]]:
  """The points that TensorBoard shows: name of the curve -> (step, value) in the order of writing."""
  points: dict[str, list[tuple[int, float]]] = {}
  for file in sorted(Path(folder).glob("events.out.tfevents.*")):
    for event in map(Event.FromString, _records(file.read_bytes())):
      if event.session_log.status == SessionLog.START:
        points = {name: [point for point in curve if point[0] < event.step] for name, curve in points.items()}
      for value in event.summary.value:
        points.setdefault(value.tag, []).append((event.step, value.simple_value))
  return points


def _records(content: bytes) -> Iterator[bytes]:
  """The records of a TFRecord file without their lengths and checksums; the last record can be incomplete."""
  start = 0
  while start + 12 <= len(content):
    end = start + 12 + int.from_bytes(content[start : start + 8], "little")
    if end + 4 > len(content):
      return
    yield content[start + 12 : end]
    start = end + 4
