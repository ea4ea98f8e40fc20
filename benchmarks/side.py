"""A measured side, as the program that measures sees it (see `protocol.py` for the side's own end)."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent


def checkouts(folders: Sequence[str]) -> dict[str, Path]:
  """Other checkouts of this project to measure beside this one, by the names that the tables give them."""
  found = {f"ours in {Path(folder).name}": Path(folder).resolve() for folder in folders}
  if len(found) < len(folders) or not all((path / "benchmarks").is_dir() for path in found.values()):
    sys.exit("--checkout takes checkouts of this project, in folders of different names")
  return found


class Side:
  """A program in a process of its own, which is idle while another is measured.

  Args:
    name: in the table.
    python: the interpreter of its virtual environment.
    program: `trainers/joey.py` for example, of the benchmarks in `checkout`.
    folder: for exchange; holds `job.json`.
    options: of the program, behind the folder.
    environment: variables that it gets besides this process' own, in which all
      sides have the huge pages that this project's programs ask for, and JAX the
      processor. A peer does not see packages that this process has by its
      PYTHONPATH.
    checkout: of this project, whose code the program is and imports.
  """

  def __init__(
    self,
    name: str,
    python: str,
    program: str,
    folder: Path,
    options: Sequence[str] = (),
    *,
    checkout: Path = _HERE.parent,
    **environment: str,
  ):
    benchmarks = checkout / "benchmarks"
    self.name = name
    self._log = folder / f"{name}.log"
    with self._log.open("w") as log:
      self._process = subprocess.Popen(
        [python, str(benchmarks / program), str(folder), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env={
          "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
          "JAX_PLATFORMS": "cpu",
          **os.environ,
          "PYTHONPATH": f"{benchmarks}{os.pathsep}{checkout}",
          **environment,
        },
      )
    self._answer()

  def ask(self, **arguments: Any) -> dict[str, Any]:
    """What the program answers to these arguments."""
    assert self._process.stdin
    print(json.dumps(arguments), file=self._process.stdin, flush=True)
    return self._answer()

  def close(self) -> None:
    assert self._process.stdin
    self._process.stdin.close()
    self._process.wait()  # not for the end of its output, which the compiler's own processes may hold open

  def _answer(self) -> dict[str, Any]:
    assert self._process.stdout
    line = self._process.stdout.readline()
    if not line:
      sys.exit(f"{self.name} ended; the end of what it printed:\n{self._log.read_text()[-2000:]}")
    return json.loads(line)
