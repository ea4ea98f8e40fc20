"""A part of `accelerator.py`: runs its cases, one after the other, and appends a line of JSON for each."""

import argparse
import gc
import json
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import report

from transformer_jax.runtime import devices
from transformer_jax.runtime.files import write_atomically
from transformer_jax.runtime.process import prefer_cublas

Rows = list[dict[str, Any]]
Case = Callable[[], Rows]


def run(cases_of: Callable[[bool], Mapping[str, Case]]) -> None:
  """Runs the cases that are not done yet.

  Args:
    cases_of: whether sizes are tiny -> the cases by name.
  """
  parser = argparse.ArgumentParser(allow_abbrev=False)
  parser.add_argument("file")
  parser.add_argument("--tiny", action="store_true")
  args = parser.parse_args()
  prefer_cublas()  # as train.py does
  file, here = Path(args.file), {"device": devices.describe()["kind"], "versions": report.context()["versions"]}
  done = {case["case"] for case in read(file) if {**case, **here} == case and not case["failed"]}
  for name, case in cases_of(args.tiny).items():
    if name not in done:
      start = time.perf_counter()
      rows, failed = attempt(case)
      seconds = time.perf_counter() - start
      rows = json.loads(json.dumps(rows, default=float))  # NumPy's numbers as Python's
      append(file, {"case": name, **here, "failed": failed, "seconds": seconds, "rows": rows})
      gc.collect()


def attempt(case: Case) -> tuple[Rows, bool]:
  """The rows of a case; if it fails, one row with the first line of the error."""
  try:
    return case(), False
  except (Exception, SystemExit) as error:
    traceback.print_exc()
    return [{"failed": f"{type(error).__name__}: {str(error).strip().split(chr(10))[0][:200]}"}], True


def read(file: Path) -> list[dict[str, Any]]:
  """The lines of earlier runs, perhaps on another device or with other versions."""
  return [*map(json.loads, file.read_text().splitlines())] if file.exists() else []


def append(file: Path, line: dict[str, Any]) -> None:
  """Appends a line; a process that is killed meanwhile leaves the earlier lines as they are."""
  write_atomically(file, "".join(json.dumps(one) + "\n" for one in [*read(file), line]).encode())
  print(json.dumps(line), file=sys.stderr, flush=True)
