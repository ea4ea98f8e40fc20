"""Compiles the programs of the other parts, several at a time, into JAX's cache on disk, where the parts find them.

A compilation takes about a minute and little more than one core. Each is a process of its own. XLA chooses some
operations by timing them, while others run on the device. It may therefore choose worse ones than alone.
"""

import argparse
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import accelerator
import decoding
import operations
import part
import training

from transformer_jax.runtime.process import cores, prefer_cublas


def programs(tiny: bool) -> dict[tuple[str, str], Callable[[], object]]:
  """(part, name) -> what compiles the program, the most important first."""

  def steps(part: Any) -> dict[str, Callable[[], object]]:
    return {name: lambda config=config: training.prepare(config) for name, config in part.programs(tiny).items()}

  found = {"training": steps(training), "decoding": decoding.programs(tiny), "operations": steps(operations)}
  # The first of each part, then the second ones.
  turns = itertools.zip_longest(*([(part, *one) for one in named.items()] for part, named in found.items()))
  return {(part, name): run for turn in turns for part, name, run in filter(None, turn)}


def compile_all(tiny: bool) -> part.Rows:
  """The seconds of each program."""
  at_a_time = max(1, cores() * 3 // 4)
  with ThreadPoolExecutor(at_a_time) as executor:
    return list(executor.map(lambda program: compile_one(*program, tiny), programs(tiny)))


def compile_one(of: str, name: str, tiny: bool) -> dict[str, Any]:
  """The row of a program."""
  start = time.perf_counter()
  command = [sys.executable, __file__, "--of", of, "--program", name, *(["--tiny"] if tiny else [])]
  done = subprocess.run(command, env={**os.environ, **accelerator.ENVIRONMENT.get(of, {})}, stdout=sys.stderr)
  row = {"part": of, "program": name, "s": time.perf_counter() - start}
  return row if done.returncode == 0 else {**row, "failed": f"exit status {done.returncode}"}


def main() -> None:
  if "--program" not in sys.argv:
    return part.run(lambda tiny: {"programs": lambda: compile_all(tiny)})
  parser = argparse.ArgumentParser(allow_abbrev=False)
  for flag in ("--of", "--program"):
    parser.add_argument(flag)
  parser.add_argument("--tiny", action="store_true")
  args = parser.parse_args()
  prefer_cublas()  # as train.py does
  programs(args.tiny)[args.of, args.program]()


if __name__ == "__main__":
  main()
