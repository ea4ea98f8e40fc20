"""The time from a command to its first step or first translation, with an empty cache and with a filled one.

    python benchmarks/startup.py --data PREFIX --workdir RUN [--config FILE] [--json FILE]

PREFIX.en and PREFIX.de, plain or .xz, are the training text, and RUN is a run folder of train.py to translate with.
Each figure is a whole command in a fresh process, from its start to the moment at which the first update is in
`metrics.jsonl`, or the first translation on standard output:

- "first": an empty cache and a new run folder. The vocabulary is learned, rows are packed, all programs are compiled.
- "same run": the same command again with one more step, as after a stop. Nothing is learned, packed or compiled, and
  the checkpoint is restored.
- "new run": another run folder with the cache of the first; the vocabulary is learned.
- translation with an empty cache, and with the cache of that start.
- `--help`, and `import jax` in a bare interpreter, a lower bound of the others.

"compiled" counts the programs that XLA compiled in the whole command, and "read" those from the compilation cache.
"""

import argparse
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import programs
import report

ROOT = Path(__file__).resolve().parent.parent
SENTENCE = "two men are playing guitar in front of a large crowd ."


def main() -> None:
  args = parse()
  with tempfile.TemporaryDirectory() as scratch:
    starts = Starts(args, Path(scratch))
    sides: dict[str, Callable[[], float]] = {
      "first step, first": functools.partial(starts.train, "first"),
      "first step, same run": functools.partial(starts.train, "same run"),
      "first step, new run": functools.partial(starts.train, "new run"),
      "first translation, first": functools.partial(starts.translate, "first"),
      "first translation, cached": functools.partial(starts.translate, "cached"),
      "--help": functools.partial(starts.full_run, "--help", [sys.executable, "-m", "transformer_jax", "--help"]),
      "import jax": functools.partial(starts.full_run, "import jax", [sys.executable, "-c", "import jax"]),
    }
    seconds = report.interleave(sides, args.rounds)
  report.finish("startup", [row(name, seconds, starts.programs) for name in sides], args.json)


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Speed of starting.", allow_abbrev=False)
  add = parser.add_argument
  add("--data", required=True, metavar="PREFIX", help="training text: PREFIX.en and PREFIX.de, plain or .xz")
  add("--workdir", required=True, metavar="DIR", help="a run folder of train.py, to translate with")
  add(
    "--config",
    default=str(ROOT / "configs" / "multi30k.py:plain"),
    metavar="FILE",
    help="(default configs/multi30k.py:plain)",
  )
  add("--override", action="append", default=[], metavar="KEY=VALUE", help="a key of the config; may be repeated")
  add("--rounds", type=int, default=3, metavar="N", help="(default 3)")
  report.add_arguments(parser, with_peers=False)
  return parser.parse_args()


class Starts:
  """The measured commands, in an environment with a separate cache.

  Attributes:
    programs: name of a measurement -> the numbers of programs (compiled, read from the cache) in the last round.
  """

  def __init__(self, args: argparse.Namespace, folder: Path):
    self._args = args
    self._folder = folder
    self._workdir = os.path.abspath(args.workdir)
    self.programs: dict[str, tuple[int, int]] = {}

  def train(self, kind: str) -> float:
    """The seconds until the first step's line in `metrics.jsonl`."""
    workdir = self._folder / ("new run" if kind == "new run" else "run")
    if kind != "same run":
      shutil.rmtree(workdir, ignore_errors=True)
    if kind == "first":
      self._empty("training")
    metrics = workdir / "metrics.jsonl"
    before = metrics.stat().st_size if metrics.exists() else 0
    steps = 2 if kind == "same run" else 1
    keys = {"data.train": self._args.data, "data.validation": "", "train.steps": steps, "train.log_every": 1}
    command = [sys.executable, str(ROOT / "train.py"), f"--config={self._args.config}", f"--workdir={workdir}"]
    command += [f"--config.{key}={value}" for key, value in keys.items()]
    command += [f"--config.{override}" for override in self._args.override]
    return self._seconds(
      f"first step, {kind}", "training", command, lambda process: _until_longer(metrics, before, process)
    )

  def translate(self, kind: str) -> float:
    """The seconds until the first line of standard output."""
    if kind == "first":
      self._empty("translation")
    command = [sys.executable, "-m", "transformer_jax", "translate", "--workdir", self._workdir]
    return self._seconds(
      f"first translation, {kind}", "translation", command, lambda process: process.stdout.readline()
    )

  def full_run(self, name: str, command: list[str]) -> float:
    """The seconds of the whole command."""
    return self._seconds(name, "training", command, lambda process: process.wait())

  def _empty(self, cache: str) -> None:
    shutil.rmtree(self._folder / cache, ignore_errors=True)

  def _seconds(self, name: str, cache: str, command: list[str], wait: Callable[[Any], Any]) -> float:
    environment = {
      **os.environ,
      "TRANSFORMER_JAX_CACHE": str(self._folder / cache),
      "PYTHONPATH": str(ROOT),
      "JAX_LOG_COMPILES": "1",
    }
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    log_file = self._folder / "log"
    with log_file.open("w") as log:
      start = time.perf_counter()
      process = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
      )
      assert process.stdin
      if "translate" in command:
        print(SENTENCE, file=process.stdin)
      process.stdin.close()
      wait(process)
      seconds = time.perf_counter() - start
      process.wait()
    said = log_file.read_text()
    if process.returncode:
      sys.exit(f"{' '.join(command)} ended with {process.returncode}:\n{said[-2000:]}")
    hits = said.count("Persistent compilation cache hit for")
    self.programs[name] = said.count("Finished XLA compilation of") - hits, hits
    return seconds


def _until_longer(file: Path, size: int, process: subprocess.Popen) -> None:
  """Waits until the file has grown, or the process has ended."""
  while process.poll() is None and not (file.exists() and file.stat().st_size > size):
    time.sleep(0.02)


def row(name: str, seconds: dict[str, list[float]], programs: dict[str, tuple[int, int]]) -> dict[str, Any]:
  """A row of the table."""
  first = name.split(",")[0] + ", first"
  compiled, read = programs[name]
  result = {
    "what": name,
    "s": report.median(seconds[name]),
    "spread": report.spread(seconds[name]),
    "compiled": compiled,
    "read": read,
  }
  return result | ({"speedup over first": report.ratio(seconds[first], seconds[name])} if first in seconds else {})


if __name__ == "__main__":
  programs.run(main)
