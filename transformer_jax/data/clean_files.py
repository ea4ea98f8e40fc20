"""The files of a cleaned corpus: pairs that pass all rules, those that are left out, and the counts."""

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

import numpy as np

from transformer_jax.data.cleaning import Rule
from transformer_jax.data.duplicates import Duplicates
from transformer_jax.runtime.errors import InputError, writing
from transformer_jax.runtime.progress import Progress
from transformer_jax.runtime.wording import counted

# What must differ, by the name that --duplicates has for it; and the reason that is reported.
KEYS = {
  "pairs": lambda source, target: f"{source}\n{target}",
  "sources": lambda source, target: source,
  "targets": lambda source, target: target,
}
REPEATED = {
  "pairs": "the pair occurred before",
  "sources": "the source occurred before",
  "targets": "the target occurred before",
}


@dataclass
class CleaningReport:
  """How many pairs were read, and how many were left out for which reason."""

  read: int = 0
  left_out: Counter[str] = field(default_factory=Counter)

  @property
  def kept(self) -> int:
    """The number of pairs that were written."""
    return self.read - self.left_out.total()

  def describe(self) -> str:
    """One line for the pairs and an indented line for each reason."""
    share = f" ({self.kept / self.read:.1%})" if self.read else ""
    lines = [f"kept {self.kept:,} of {counted(self.read, 'pairs')}{share}"]
    return "\n  ".join([*lines, *(f"{count:,} left out: {reason}" for reason, count in self.left_out.items())])


def empty_report(rules: Mapping[str, Rule], duplicates: str | None) -> CleaningReport:
  """A report with 0 for each reason, in the order in which they are tried."""
  reasons = [*rules, *([REPEATED[duplicates]] if duplicates else [])]
  return CleaningReport(left_out=Counter(dict.fromkeys(reasons, 0)))


def clean(
  pairs: Iterable[tuple[str, str]],
  rules: Mapping[str, Rule],
  duplicates: str | None,
  source: Path,
  target: Path,
  left_out: Path | None,
) -> CleaningReport:
  """Writes the pairs that pass all rules; a file appears only when it is complete.

  Args:
    pairs: the corpus.
    rules: the rules by their reasons; the first that a pair breaks counts.
    duplicates: which of `pairs`, `sources` and `targets` may occur only once; None is none.
    source, target: the new files.
    left_out: the new file of what is left out: the number of the pair from 1, the reason, source and target, with tabs
      between them; a tab in the text becomes a space. None is no such file.

  Raises:
    InputError: the corpus cannot be read, no pair is left, or a new file was made meanwhile.
    RunError: the disk is full.
  """
  report = empty_report(rules, duplicates)
  with writing(source.parent), _beside(source) as folder, _beside(left_out or source) as folder_of_others:
    others_file = folder_of_others / "left_out"  # on its own disk, so that it can be renamed
    with _text(others_file, "w") as others:
      with _text(folder / "passed", "w") as passed, Duplicates(folder) as seen:
        for number, pair in passing(_shown(pairs), rules, report, lambda *line: others.write(_line(*line))):
          passed.write("\n".join([str(number), *pair, ""]))
          if duplicates:
            seen.add(number, KEYS[duplicates](*pair))
        repeated = seen.repeated(report.read + 1)
      _write(folder, repeated, REPEATED.get(duplicates or "", ""), others, report)
    if not report.kept:
      raise _none_left(report)
    _publish({source: folder / "source", target: folder / "target"} | ({left_out: others_file} if left_out else {}))
  return report


def _publish(files: Mapping[Path, Path]) -> None:
  """Gives each file its name, none of which may be another's."""
  for path in files:
    if path.exists():
      raise InputError(f"{path} was made meanwhile: choose another name, or delete it")
  for path, file in files.items():
    os.replace(file, path)


def passing(
  pairs: Iterable[tuple[str, str]],
  rules: Mapping[str, Rule],
  report: CleaningReport,
  leave_out: Callable[[str, str, str, str], object] = lambda number, reason, source, target: None,
) -> Iterator[tuple[int, tuple[str, str]]]:
  """The pairs that pass all rules, with their numbers from 1; the others are counted and given to `leave_out`."""
  for number, (source, target) in enumerate(pairs, 1):
    report.read = number
    reason = next((reason for reason, breaks in rules.items() if breaks(source, target)), None)
    if reason is None:
      yield number, (source, target)
    else:
      report.left_out[reason] += 1
      leave_out(str(number), reason, source, target)


def _none_left(report: CleaningReport) -> InputError:
  counts = "; ".join(f"{count:,} left out: {reason}" for reason, count in report.left_out.items() if count)
  return InputError(f"no pair is left, so that nothing was written: {counts or 'the weights of --data select none'}")


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
  """A temporary folder on the disk where a file will be."""
  with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name[:40]}.") as name:
    yield Path(name)


def _shown(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
  """The pairs; the progress of reading them is shown."""
  with Progress("pair") as progress:
    for pair in pairs:
      yield pair
      progress.update(1)


def _write(folder: Path, repeated: np.ndarray, reason: str, others: IO[str], report: CleaningReport) -> None:
  """Writes the pairs that passed to `source` and `target`, without repeated ones."""
  with ExitStack() as stack:
    passed = stack.enter_context(_text(folder / "passed", "r"))
    source, target = (stack.enter_context(_text(folder / name, "w")) for name in ("source", "target"))
    for number, *pair in zip(*[(line.removesuffix("\n") for line in passed)] * 3, strict=True):
      if repeated[int(number)]:
        report.left_out[reason] += 1
        others.write(_line(number, reason, *pair))
      else:
        source.write(f"{pair[0]}\n")
        target.write(f"{pair[1]}\n")


def _text(path: Path, mode: Literal["r", "w"]) -> IO[str]:
  """A UTF-8 file in which only a line feed ends a line."""
  return open(path, mode, encoding="utf-8", newline="\n")


def _line(*fields: str) -> str:
  return "\t".join(field.replace("\t", " ") for field in fields) + "\n"
