"""The measuring program's end of a measured side; `protocol.py` is the side's own end."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent


def checkouts(folders: Sequence[str]) -> dict[str, Path]:
  """Other checkouts of this project to measure beside this one, by their names in the tables."""
  found = {f"ours in {Path(folder).name}": Path(folder).resolve() for folder in folders}
  if len(found) < len(folders) or not all((path / "benchmarks").is_dir() for path in found.values()):
    sys.exit("--checkout takes checkouts of this project, in folders of different names")
  return found


class Side:
  """A program in a separate process, which is idle while another side is measured.

  Args:
    name: the name of the side in the table.
    python: the interpreter of the side's virtual environment.
    program: the program in the benchmarks of `checkout`, such as `trainers/joey.py`.
    folder: the exchange folder, which holds `job.json`.
    options: the program's arguments after the folder.
    environment: variables that the side gets in addition to this process' own.
      By default all sides use huge pages, as this project's programs do, and JAX
      uses the CPU. A peer does not see the packages of this process' PYTHONPATH.
    checkout: the checkout of this project that has the program and the code that it imports.
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
    """The program's answer to these arguments."""
    assert self._process.stdin
    print(json.dumps(arguments), file=self._process.stdin, flush=True)
    return self._answer()

  def close(self) -> None:
    assert self._process.stdin
    self._process.stdin.close()
    self._process.wait()  # not until its output ends, which the compiler's processes may keep open

  def _answer(self) -> dict[str, Any]:
    assert self._process.stdout
    line = self._process.stdout.readline()
    if not line:
      sys.exit(f"{self.name} ended; the end of what it printed:\n{self._log.read_text()[-2000:]}")
    return json.loads(line)
