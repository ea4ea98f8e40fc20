"""A parallel corpus that a program writes pair by pair, and continues after it was killed."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from transformer_jax.runtime import untrusted
from transformer_jax.runtime.errors import InputError, writing
from transformer_jax.runtime.file_locks import lock
from transformer_jax.runtime.files import write_atomically

_OF_THE_RUN = ("configs", "params", "vocabulary")  # digests, which say nothing to a person


class GrowingCorpus:
  """The files PREFIX.SOURCE and PREFIX.TARGET, and PREFIX.json, which says how the pairs are made.

  Each target is a line of a text that exists already. So the pairs of both files tell how far an earlier process came,
  whenever it was killed: a last pair that is not whole in both files is cut off and made again.

  Args:
    prefix: the path without endings.
    languages: the endings of sources and targets.
    made: how the pairs are made, as JSON values: an earlier process must have made them in the same way.

  Attributes:
    count: the pairs that are there.

  Raises:
    InputError: there are such files of another origin, or another process writes them.
  """

  def __init__(self, prefix: Path, languages: tuple[str, str], made: dict[str, object]):
    self._paths = [prefix.with_name(f"{prefix.name}.{language}") for language in languages]
    self._settings = prefix.with_name(f"{prefix.name}.json")
    self._made = made
    self._stack = ExitStack()
    self._files: list[BinaryIO] = []
    self.count = 0

  def __enter__(self) -> "GrowingCorpus":
    with self._stack:
      self._require_same()
      for path in self._paths:
        with writing(path):
          file = open(path, "a+b")
        self._stack.callback(_close, file, path)
        self._files.append(file)
        try:
          lock(file, wait=False)
        except BlockingIOError as error:
          raise InputError(f"another process writes {path}: wait for its end, or give another --output") from error
      self._require_same()  # another process may have written them since
      if not self._settings.exists():
        write_atomically(self._settings, (json.dumps(self._made, indent=2) + "\n").encode())
      self._stack = self._stack.pop_all()
    return self

  def __exit__(self, *_: object) -> None:
    with self._stack:
      self.flush()

  def skip(self, targets: Iterator[str], name: str) -> None:
    """Reads the targets of the pairs that are there already, and counts these.

    Args:
      targets: the lines of the text from which the corpus is made.
      name: the name of the text in messages.

    Raises:
      InputError: the corpus was made from another text.
    """
    ends = [0, 0]
    for file in self._files:
      file.seek(0)
    while all(lines := [file.readline() for file in self._files]) and all(line.endswith(b"\n") for line in lines):
      target = next(targets, None)
      if target is None or target.encode() + b"\n" != lines[1]:
        raise InputError(
          f"line {self.count + 1} of {self._paths[1]} is not that of {name}, from which it was made: give the same "
          "text, or another --output"
        )
      ends = [end + len(line) for end, line in zip(ends, lines, strict=True)]
      self.count += 1
    for file, end, path in zip(self._files, ends, self._paths, strict=True):
      with writing(path):
        file.truncate(end)

  def append(self, source: str, target: str) -> None:
    """Writes a pair, which is safe on the disk after the next `flush`.

    Raises:
      RunError: the disk is full.
    """
    for file, text, path in zip(self._files, (source, target), self._paths, strict=True):
      with writing(path):
        file.write(text.encode() + b"\n")
    self.count += 1

  def flush(self) -> None:
    """Puts all pairs on the disk, where not even a crash of the machine loses them.

    Raises:
      RunError: the disk is full.
    """
    for file, path in zip(self._files, self._paths, strict=True):
      with writing(path):
        file.flush()
        os.fsync(file.fileno())

  def _require_same(self) -> None:
    """Raises InputError if there are files that this corpus may not continue."""
    if not self._settings.exists():
      for path in self._paths:
        if path.exists() and path.stat().st_size:
          raise InputError(f"{path} exists, but was not begun by this command: give another --output")
      return
    earlier = untrusted.read_json(self._settings)
    if not isinstance(earlier, dict):
      raise InputError(f"{self._settings} is not what this command writes: give another --output")
    for key in [*self._made, *earlier]:
      if earlier.get(key) != self._made.get(key):
        if key in _OF_THE_RUN:
          raise InputError(
            f"{self._settings} says that the corpus was begun with another run: give that one, or another --output"
          )
        raise InputError(
          f"{self._settings} says that the corpus was begun with {key} = {json.dumps(earlier.get(key))}, not "
          f"{json.dumps(self._made.get(key))}: give what it was begun with, or another --output"
        )


def _close(file: BinaryIO, path: Path) -> None:
  with writing(path):  # a full disk refuses once more what is still to be written
    file.close()
