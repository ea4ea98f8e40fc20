"""The accuracy of a first run: trains configs/numbers.py with several seeds and devices, and translates numbers.

    python benchmarks/first_command.py --runs DIR [--seeds 1 2 3 4 5] [--devices 1 2] [--languages de] [--output DIR]
        [--KEY=VALUE ...]

Other flags are keys of the config, as in --train.steps=500. The same command resumes after a stop.

`translate` of each run gets the numbers of the test set, which the run has not seen, all numbers from 0 to 100, and
1,000 numbers that are in no split, so that nothing was ever chosen by them.
OUTPUT then has the report of each run (`de-seed-1-devices-2.json`, with all wrong translations) and the table
(`table.md`). In the table, `2 to 6 digits` is the mean over the numbers of digits.
"""

import argparse
import json
import os
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import children
import programs
import report

from transformer_jax import runs
from transformer_jax.data.numbers import distinct_numbers, in_words
from transformer_jax.runtime.files import write_atomically

UP_TO_100, NEW = "0 to 100", "in no split"


def main() -> None:
  args, keys = parse()
  children.end_children()
  output = Path(args.output)
  output.mkdir(parents=True, exist_ok=True)
  require_same_keys(output, keys)
  for language in args.languages:
    for seed in args.seeds:
      for devices in args.devices:
        full_run(language, seed, devices, Path(args.runs), output, keys)
  report.write_table([row(json.loads(path.read_text())) for path in files(output)], output / "table.md")


def files(output: Path) -> list[Path]:
  """The results of all runs."""
  return sorted(output.glob("*-seed-*-devices-*.json"))


def require_same_keys(output: Path, keys: list[str]) -> None:
  """Ends the program if OUTPUT has a result of other keys, as the table does not show them."""
  for path in files(output):
    if json.loads(path.read_text())["keys"] != keys:
      sys.exit(f"{path} has other keys: choose another --output")


def parse() -> tuple[argparse.Namespace, list[str]]:
  parser = argparse.ArgumentParser(description="What a first run knows.", allow_abbrev=False)
  add = parser.add_argument
  add("--runs", required=True, metavar="DIR", help="where the run folders are made, or found")
  add("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5], metavar="N", help="(default 1 to 5)")
  add("--devices", type=int, nargs="+", default=[1, 2], metavar="N", help="that the processor is split into")
  add("--languages", nargs="+", default=["de"], metavar="CODE", help="of the translations (default de)")
  add("--output", default="docs/results/numbers", metavar="DIR", help="for reports and the table")
  args, rest = parser.parse_known_args()
  return args, programs.overrides(parser, rest)


def full_run(language: str, seed: int, devices: int, folder: Path, output: Path, keys: list[str]) -> None:
  """One run from its first update to its last translation; finished parts are not repeated."""
  name = f"{language}-seed-{seed}-devices-{devices}"
  done = output / f"{name}.json"
  if done.exists():
    return
  report.progress(name)
  flags = {"data.target_language": language, "train.seed": str(seed)}
  arguments = [f"--config.{key}" for key in (*(f"{key}={value}" for key, value in flags.items()), *keys)]
  environment = os.environ | {"XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}
  began = time.monotonic()
  run = folder / name
  children.train([f"--workdir={run}", *arguments], environment)
  seconds = time.monotonic() - began
  lines = runs.open(run).metrics
  training = [line for line in lines if line["split"] == "train"]
  result = {
    "language": language,
    "seed": seed,
    "devices": devices,
    "keys": keys,
    "updates": training[-1]["step"],
    "seconds of updates": sum(line["seconds"] for line in training),
    "seconds": seconds,
    "load": os.getloadavg()[2],  # of the last fifteen minutes: it shows whether other programs ran beside this run
    **asked(run, language, environment),
    "provenance": runs.open(run).provenance,
  }
  write_atomically(done, f"{json.dumps(result, indent=1, ensure_ascii=False)}\n".encode())


def asked(run: Path, language: str, environment: dict[str, str]) -> dict[str, Any]:
  """The exact match of each group of numbers, and the wrong translations."""
  groups = {str(digits): numbers for digits, numbers in distinct_numbers()["test"].items() if numbers}
  groups[UP_TO_100], groups[NEW] = list(range(101)), in_no_split()
  numbers = [number for group in groups.values() for number in group]
  lines = "".join(in_words(number, "en") + "\n" for number in numbers)
  answers = children.command(["translate", "--workdir", str(run)], lines.encode(), environment).decode()
  answer = dict(zip(numbers, answers.splitlines(), strict=True))
  wrong = {number: found for number, found in answer.items() if found != in_words(number, language)}
  return {
    "exact match": {name: sum(number not in wrong for number in group) / len(group) for name, group in groups.items()},
    "numbers": {name: len(group) for name, group in groups.items()},
    "wrong": {str(number): found for number, found in wrong.items()},
  }


def in_no_split() -> list[int]:
  """500 numbers of five digits and 500 of six, without those of training, validation and test."""
  known = {number for split in distinct_numbers().values() for numbers in split.values() for number in numbers}
  draw = random.Random(1)
  return [
    number
    for digits in (5, 6)
    for number in draw.sample([n for n in range(10 ** (digits - 1), 10**digits) if n not in known], 500)
  ]


def row(result: dict[str, Any]) -> dict[str, Any]:
  """A row of the table, in percent."""
  match = result["exact match"]
  by_digits = {f"{digits} digits": share for digits, share in match.items() if digits not in (UP_TO_100, NEW)}
  shares = {"2 to 6 digits": statistics.mean(by_digits.values()), **by_digits, UP_TO_100: match[UP_TO_100]}
  return {
    "to": result["language"],
    "seed": str(result["seed"]),
    "devices": str(result["devices"]),
    **{name: f"{share:.2%}" for name, share in shares.items()},
    NEW: f"{match[NEW]:.2%}" if NEW in match else "",  # older results have none
    "updates": str(result["updates"]),
    "minutes of updates": f"{result['seconds of updates'] / 60:.1f}",
  }


if __name__ == "__main__":
  programs.run(main)
