"""Long runs whose memory, open files and compilations must not grow.

    python benchmarks/soak.py train [--steps 200000] [--folder DIR] [--json FILE] [--picture FILE.svg]
    python benchmarks/soak.py translate [--lines 1000000] [--folder DIR] [--json FILE] [--picture FILE.svg]

`train` runs `train.py` in a separate process, on a tiny model with checkpoints, validation and translation. Every few
seconds it reads the process' resident memory, open files and threads from /proc; JAX itself counts the compilations.
With --folder the same command resumes a stopped run and keeps the earlier samples.

`translate` sends short lines through `python -m transformer_jax translate` by a pipe that is never empty. It checks
that each line gets a translation, and always the same one.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import programs
import report
import tiny

COMPILED = "Finished XLA compilation of"
KEYS = {
  "train.batch_tokens": 16,
  "train.log_every": 500,
  "train.save_every": 5000,
  "train.keep": 2,
  "evaluate.every": 5000,
}


def main() -> None:
  args = parse()
  with tempfile.TemporaryDirectory() as scratch:
    args.soak(args, Path(args.folder or scratch).resolve())


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Long runs.", allow_abbrev=False)
  commands = parser.add_subparsers(dest="command", required=True)

  def command(name: str, soak: Callable[[argparse.Namespace, Path], None]) -> argparse.ArgumentParser:
    added = commands.add_parser(name, allow_abbrev=False)
    added.set_defaults(soak=soak)
    added.add_argument("--every", type=float, default=5.0, metavar="S", help="seconds between two samples (default 5)")
    added.add_argument("--folder", metavar="DIR", help="for the run (default: deleted at the end)")
    added.add_argument("--picture", metavar="FILE", help="where the picture goes, in SVG")
    report.add_arguments(added, with_peers=False)
    return added

  command("translate", translate).add_argument(
    "--lines", type=int, default=1_000_000, metavar="N", help="(default 1,000,000)"
  )
  command("train", train).add_argument("--steps", type=int, default=200_000, metavar="N", help="(default 200,000)")
  return parser.parse_args()


def train(args: argparse.Namespace, folder: Path) -> None:
  """Measures the training of a tiny model."""
  runs = tiny.TinyRuns(folder, {**KEYS, "train.steps": args.steps})
  workdir, log, samples = folder / "run", folder / "stderr", Samples(folder / "samples.jsonl")
  with log.open("w") as stderr:
    process = runs.start(workdir, stderr, {"JAX_LOG_COMPILES": "1"})
  while process.poll() is None:
    time.sleep(args.every)
    samples.take(process.pid, tiny.last_logged(workdir), log.read_text().count(COMPILED))
  if process.returncode:
    sys.exit(f"train.py ended with {process.returncode}:\n{log.read_text()[-2000:]}")
  samples.finish("soak_train", "step", args)


def translate(args: argparse.Namespace, folder: Path) -> None:
  """Measures the translation of short lines by a tiny model; equal lines must have equal translations."""
  (folder / "translate.jsonl").unlink(missing_ok=True)  # its samples are of one start
  runs = tiny.TinyRuns(folder, {"train.steps": 300, "evaluate.every": 0})
  workdir, log, samples = folder / "translating", folder / "translate.stderr", Samples(folder / "translate.jsonl")
  with log.open("w") as stderr:
    if runs.start(workdir, subprocess.DEVNULL).wait():
      sys.exit("train.py failed")
    process = subprocess.Popen(
      [sys.executable, "-m", "transformer_jax", "translate", "--workdir", str(workdir)],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=stderr,
      env={**os.environ, "PYTHONPATH": str(tiny.ROOT), "JAX_LOG_COMPILES": "1"},
    )
  lines = (folder / "train.en").read_text().splitlines()
  threading.Thread(target=_feed, args=(process, lines, args.lines), daemon=True).start()
  answers: dict[str, bytes] = {}
  done, due = 0, time.monotonic()
  for done, answer in enumerate(process.stdout or (), 1):
    line = lines[(done - 1) % len(lines)]
    if answers.setdefault(line, answer) != answer:
      sys.exit(f"line {done} was translated as {answer!r}, but before as {answers[line]!r}")
    if time.monotonic() >= due:
      due = time.monotonic() + args.every
      samples.take(process.pid, done, log.read_text().count(COMPILED))
  if process.wait() or done != args.lines:
    sys.exit(
      f"{done} of {args.lines} lines were answered, with status {process.returncode}:\n{log.read_text()[-2000:]}"
    )
  samples.finish("soak_translate", "line", args)


def _feed(process: subprocess.Popen, lines: list[str], count: int) -> None:
  """Writes the lines again and again, `count` in all."""
  with process.stdin as pipe:
    for begin in range(0, count, len(lines)):
      pipe.write("".join(f"{line}\n" for line in lines[: count - begin]).encode())


class Samples:
  """Samples of the memory, open files and threads of a process during its work, over one or several starts.

  Args:
    file: the file to which each sample is written at once.
  """

  def __init__(self, file: Path):
    self._file = file
    self._start = time.time()

  def take(self, process: int, done: int, compiled: int) -> None:
    """Takes one sample of a process.

    Args:
      process: the number of the process.
      done: the amount of its work so far.
      compiled: the number of programs compiled since its start.
    """
    try:
      status = Path(f"/proc/{process}/status").read_text()
      files = len(os.listdir(f"/proc/{process}/fd"))
    except OSError:  # the process has ended
      return
    if "VmRSS" not in status:
      return
    sample = {
      "start": self._start,
      "seconds": time.time() - self._start,
      "done": done,
      "MB": _number("VmRSS", status) / 1024,
      "files": files,
      "threads": _number("Threads", status),
      "compiled": compiled,
    }
    with self._file.open("a") as file:
      file.write(json.dumps(sample) + "\n")

  def read(self) -> list[dict[str, float]]:
    return [json.loads(line) for line in self._file.read_text().splitlines()]

  def finish(self, program: str, unit: str, args: argparse.Namespace) -> None:
    """Prints the table of ten moments, and writes the JSON, and the picture if one is wanted."""
    samples = [sample for sample in self.read() if sample["done"]]
    if not samples:
      sys.exit(f"no sample has a {unit}: ask for more work, or a smaller --every")
    end = samples[-1]["done"]
    rows: list[dict[str, Any]] = []
    for tenth in range(1, 11):
      sample = next(sample for sample in samples if sample["done"] >= end * tenth / 10)
      rows.append({unit: sample["done"], **{name: sample[name] for name in ("MB", "files", "threads", "compiled")}})
    half = [sample for sample in samples if sample["done"] >= end / 2]
    report.finish(
      program,
      rows,
      args.json,
      starts=len({sample["start"] for sample in samples}),
      samples=len(samples),
      growth=growth(half),
      rate=rate(samples),
    )
    print(f"{rate(samples):,.0f} {unit}s a second; in the second half {growth(half):+.2f} MB for 100,000 {unit}s")
    if args.picture:
      draw(samples, unit, Path(args.picture))


def _number(name: str, status: str) -> int:
  found = re.search(rf"^{name}:\s*(\d+)", status, re.MULTILINE)
  assert found
  return int(found[1])


def growth(samples: list[dict[str, float]]) -> float:
  """The growth of memory in MB per 100,000 units of work, by least squares."""
  import numpy as np

  done, memory = (np.array([sample[name] for sample in samples]) for name in ("done", "MB"))
  return float(np.polyfit(done / 1e5, memory, 1)[0])


def rate(samples: list[dict[str, float]]) -> float:
  """The work per second, from the samples of the last start."""
  last = [sample for sample in samples if sample["start"] == samples[-1]["start"]]
  return (last[-1]["done"] - last[0]["done"]) / max(last[-1]["seconds"] - last[0]["seconds"], 1e-9)


def draw(samples: list[dict[str, float]], unit: str, path: Path) -> None:
  """Draws memory, open files and compilations over the work."""
  figure, axes = report.pyplot().subplots(1, 3, figsize=(9, 2.6), layout="constrained")
  for axis, name, label in zip(
    axes, ("MB", "files", "compiled"), ("resident memory, MB", "open files", "programs compiled"), strict=True
  ):
    axis.plot([sample["done"] for sample in samples], [sample[name] for sample in samples])
    axis.set(xlabel=f"{unit}s", ylabel=label, ylim=(0, 1.2 * max(sample[name] for sample in samples)))
    axis.grid(alpha=0.3)
  figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
  programs.run(main)
