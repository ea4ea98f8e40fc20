"""The log of a run as series of numbers, read without trust: what cannot be read is left out and counted."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from etils import epath

from transformer_jax.runs.metrics_file import FILE, parsed
from transformer_jax.runtime.errors import one_line
from transformer_jax.runtime.files import open_buffered
from transformer_jax.runtime.values import JsonObject
from transformer_jax.runtime.wording import counted

# A line of the log has some hundred bytes, or some thousand with sample translations. The lines take several times as
# much memory as the file.
_LONGEST_LINE, _LARGEST_FILE = 1 << 17, 1 << 27
_LONGEST_SAMPLE = 1000
_LARGEST_NUMBER = 1e100  # so that ratios and margins of an axis are finite, too


class Series(NamedTuple):
  """One number of the log over the steps.

  Attributes:
    steps: `[points]` int64, increasing.
    values: `[points]` float64, finite.
  """

  steps: np.ndarray
  values: np.ndarray


class Sample(NamedTuple):
  """A translation of the validation text, as it was after some step."""

  source: str
  translation: str
  reference: str


class Log(NamedTuple):
  """The lines of `metrics.jsonl` that can be read.

  Attributes:
    lines: the lines of each split, `train` or `validation`, in the order of their steps. Of two lines of one step the
      later one counts.
    notes: what was left out, in sentences.
  """

  lines: Mapping[str, list[JsonObject]]
  notes: list[str]

  def series(self, split: str, name: str) -> Series:
    """The finite numbers with this name in the lines of a split."""
    points = [(line["step"], value) for line in self.lines[split] if (value := number(line.get(name))) is not None]
    steps, values = zip(*points, strict=True) if points else ((), ())
    return Series(np.array(steps, np.int64), np.array(values, np.float64))

  def last(self, split: str) -> JsonObject:
    """The last line of a split; empty if there is none."""
    return self.lines[split][-1] if self.lines[split] else {}

  def samples(self) -> list[tuple[int, list[Sample]]]:
    """The step and the sample translations of each validation that has some."""
    found = [(line["step"], _samples(line.get("samples"))) for line in self.lines["validation"]]
    return [(step, samples) for step, samples in found if samples]


def read(workdir: epath.Path) -> Log:
  """The log of the run in a folder, which may come from a stranger; it raises nothing for what is in the file."""
  found: dict[str, dict[int, JsonObject]] = {"train": {}, "validation": {}}
  left_out: list[int] = []
  path = workdir / FILE
  if not path.exists():
    return Log({split: [] for split in found}, [f"The run has no {FILE}, so there are no curves."])
  if path.is_dir():
    return Log({split: [] for split in found}, [f"{FILE} of the run is a folder, so there are no curves."])
  for n, line in enumerate(_lines(path), 1):
    entry = parsed(line)
    if entry is None:
      left_out.append(n)
    elif entry["split"] in found:
      found[entry["split"]][entry["step"]] = entry
  lines = {split: [entry for _, entry in sorted(entries.items())] for split, entries in found.items()}
  return Log(lines, _notes(left_out, path.stat().length))


def number(value: object) -> float | None:
  """The value as a float; None if it is no number, or so large or small that no axis can have it."""
  if not isinstance(value, int | float) or isinstance(value, bool):
    return None
  return float(value) if value == 0 or 1 / _LARGEST_NUMBER < abs(value) < _LARGEST_NUMBER else None


def _notes(left_out: list[int], length: int) -> list[str]:
  notes = []
  if left_out:
    notes.append(f"{FILE}: {counted(len(left_out), 'lines')} could not be read, the first is line {left_out[0]:,}.")
  if length > _LARGEST_FILE:
    notes.append(f"{FILE} has more than {_LARGEST_FILE:,} bytes: only its beginning was read.")
  return notes


def _lines(path: epath.Path) -> Iterator[bytes]:
  """The lines of a file, the end of a very long one cut off, without a last one that a kill cut short."""
  left = _LARGEST_FILE
  with open_buffered(path) as file:
    while left > 0 and (line := file.readline(_LONGEST_LINE)):
      left -= len(line)
      part = line
      while left > 0 and not part.endswith(b"\n") and (part := file.readline(_LONGEST_LINE)):
        left -= len(part)
      if part.endswith(b"\n") or parsed(line):  # an editor may have taken the last line feed
        yield line


def _samples(values: object) -> list[Sample]:
  found = values if isinstance(values, list) else []
  named = [[each.get(name) for name in Sample._fields] for each in found if isinstance(each, dict)]
  return [
    Sample(*(one_line(text, _LONGEST_SAMPLE) for text in texts))
    for texts in named
    if all(isinstance(text, str) for text in texts)
  ]
