"""Files damaged at random for a reader: it reads each, or refuses it in one sentence, soon and in little memory."""

import contextlib
import random
import re
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.fuzz_run_folder import mutated
from transformer_jax.runtime.errors import InputError, RunError

# CI has the shorter form of these tests.
COUNTS = pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])


def read_damaged(
  files: Sequence[Path],
  count: int,
  attempt: Callable[[], object],
  record: Callable[[str, object], None],
  *,
  seconds: float = 10,
  mebibytes: int = 300,
) -> int:
  """Damages one of the files `count` times, each time another copy, and reads.

  Args:
    files: those that may be damaged; after each reading they are whole again.
    count: how often.
    attempt: reads, and checks what it has read.
    record: pytest's `record_property`: the longest reading and the memory are in the file of `--junitxml`.
    seconds: the most that a reading may take.
    mebibytes: the most by which the peak of the process's memory may grow.

  Returns:
    How many were refused.
  """
  generator, contents = random.Random(0), {path: path.read_bytes() for path in files}
  _forget_peak()
  before, longest, refused = _peak(), 0.0, 0
  for number in range(count):
    path = generator.choice(files)
    path.write_bytes(mutated(contents[path], generator))
    begun = time.monotonic()
    try:
      attempt()
    except (InputError, RunError) as error:
      refused += 1
      assert "\n" not in str(error) and len(str(error)) < 1000, (number, path.name, error)
    took = time.monotonic() - begun
    assert took < seconds, (number, path.name)
    longest = max(longest, took)
    path.write_bytes(contents[path])
  grown = _peak() - before
  for name, value in {
    **{"damaged": count, "refused": refused},
    **{"longest_seconds": round(longest, 3), "peak_mebibytes": _peak(), "grown_mebibytes": grown},
  }.items():
    record(name, value)
  assert grown < mebibytes
  return refused


def _forget_peak() -> None:
  """Resets the peak, on Linux: an earlier test of the process may have had more memory."""
  with contextlib.suppress(OSError):
    Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
  """The most resident memory since `_forget_peak`, where that works, in MiB."""
  status = Path("/proc/self/status")
  found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text()) if status.exists() else None
  return (int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) >> 10
