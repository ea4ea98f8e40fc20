"""Trains on disks that are too small, and then makes them larger.

    python benchmarks/full_disk.py [--sizes 30] [--json FILE]           # as root, as it mounts file systems in memory

The run folder and the cache of packed rows are on a tmpfs of some kB; with each size another file fills the disk.
`train.py` must end with one line of error and status 1 (or 2, if nothing was begun and another folder can be chosen),
without a traceback, and every checkpoint must be complete. Then the disk is made larger, and the same command must end
with the parameters and the log of a run that had enough room from the start.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import children
import kills
import programs
import report
import tiny

KEYS = {**kills.KEYS, "train.steps": 100}


def main() -> None:
  args = parse()
  with tempfile.TemporaryDirectory() as scratch, mounted(Path(scratch) / "disk", kB=1 << 20) as disk:
    runs = tiny.TinyRuns(Path(scratch), {**KEYS, "data.cache_dir": disk / "cache"})
    whole = disk / "whole"
    kills.run_to_the_end(runs, whole, compiled(scratch))
    kept = Path(scratch) / "whole"
    subprocess.run(["cp", "-r", str(whole), str(kept)], check=True)
    needed = kB_used(disk)
    sizes = [round(needed * ((i + 1) / args.sizes) ** 2) for i in range(args.sizes)]  # more of the small ones
    outcomes = []
    for size in sizes:
      outcomes.append(outcome(runs, disk, size, kept, compiled(scratch)))
      report.progress(str(outcomes[-1]))
  report.finish("full_disk", table(outcomes), args.json, kB_needed=needed, outcomes=outcomes)
  sys.exit(any(each["wrong"] for each in outcomes))


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Training on full disks.", allow_abbrev=False)
  parser.add_argument("--sizes", type=int, default=30, metavar="N", help="how many disks (default 30)")
  report.add_arguments(parser, with_peers=False)
  return parser.parse_args()


def compiled(scratch: str) -> dict[str, str]:
  """The environment with a cache of compiled programs for all runs, outside of the small disks."""
  return {"JAX_COMPILATION_CACHE_DIR": f"{scratch}/compiled", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1"}


@contextmanager
def mounted(folder: Path, kB: int) -> Iterator[Path]:
  """A file system in memory."""
  folder.mkdir()
  subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kB}k", "tmpfs", str(folder)], check=True)
  try:
    yield folder
  finally:
    subprocess.run(["umount", str(folder)], check=True)


def resize(disk: Path, kB: int) -> None:
  subprocess.run(["mount", "-o", f"remount,size={kB}k", str(disk)], check=True)


def kB_used(disk: Path) -> int:
  found = os.statvfs(disk)
  return (found.f_blocks - found.f_bfree) * found.f_frsize // 1024


def outcome(runs: tiny.TinyRuns, disk: Path, size: int, whole: Path, environment: dict[str, str]) -> dict[str, Any]:
  """The outcome on one disk: the run's error, and whether the run resumed when there was room."""
  for old in disk.iterdir():
    shutil.rmtree(old) if old.is_dir() else old.unlink()
  resize(disk, size)
  workdir = disk / "run"
  log = disk.parent / "stderr"
  with log.open("w") as stderr:
    status = runs.start(workdir, stderr, environment).wait()
  said = log.read_text()
  errors = [line for line in said.splitlines() if line.startswith("transformer-jax: error: ")]
  step = children.last_checkpoint(workdir)
  resize(disk, 1 << 20)
  wrong = [] if (status, len(errors)) in {(0, 0), (1, 1), (2, 1)} else [f"status {status}, {len(errors)} errors"]
  wrong += ["a traceback"] if "Traceback" in said or "Exception ignored" in said else []
  kills.run_to_the_end(runs, workdir, environment)
  again = workdir.with_suffix(".stderr").read_text()
  if step and not any(words in again for words in (f"resuming after step {step}", f"it has made {step} steps")):
    wrong.append(f"the checkpoint of step {step} was not used")
  wrong += kills.compare(whole, workdir)
  what = errors[0].removeprefix("transformer-jax: error: ").replace(str(disk), "DISK") if errors else "it fits"
  found = {"kB": size, "status": status, "checkpoint": step, "said": what, "wrong": ", ".join(wrong)}
  return found | ({"stderr": said} if wrong else {})


def table(outcomes: list[dict[str, Any]]) -> list[dict[str, Any]]:
  """The table: a row for each kind of file that could not be written."""
  rows: dict[tuple[int, str], dict[str, Any]] = {}
  for each in outcomes:
    what = re.sub(r"(?<=/rows/)\S+", "...", each["said"].partition(":")[0])
    row = rows.setdefault(
      (each["status"], what), {"first words of the error": what, "exit status": each["status"], "times": 0, "wrong": 0}
    )
    row["times"] += 1
    row["wrong"] += bool(each["wrong"])
  return list(rows.values())


if __name__ == "__main__":
  programs.run(main)
