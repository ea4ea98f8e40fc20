"""The shared functions of the benchmarks: sides in turns, medians with their spread, a table, a picture, and JSON.

seconds = report.interleave({"ours": run_ours, "theirs": run_theirs}, rounds=5)
rows = [{"side": side, "s": report.median(s), "spread": report.spread(s)} for side, s in seconds.items()]
report.finish("my_benchmark", rows, args.json)
"""

import argparse
import itertools
import json
import os
import platform
import random
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tabulate import tabulate

from transformer_jax.runtime.versions import versions

# The load before any side runs: other programs slow the sides unequally (OpenMP's threads wait for each other).
_LOAD_BEFORE = os.getloadavg()[0]


def add_arguments(parser: argparse.ArgumentParser, *, with_peers: bool = True) -> None:
  """Adds `--json`, and `--peers` for the folder of the peers' virtual environments (see `peers.py`)."""
  parser.add_argument(
    "--json", metavar="FILE", help="where the result goes (default: in the folder for temporary files)"
  )
  if with_peers:
    parser.add_argument("--peers", metavar="DIR", help="virtual environments of the peers (default: the user's cache)")


def interleave(sides: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
  """Runs all sides in each round, A B A B, so that other load on the machine affects all of them.

  Args:
    sides: name -> a function that does the work once and returns its seconds
      (or another figure).
    rounds: the number of rounds.

  Returns:
    name -> the figure of each round.
  """
  found: dict[str, list[float]] = {name: [] for name in sides}
  for number in range(rounds):
    for name, run in sides.items():
      found[name].append(run())
    progress(f"round {number + 1} of {rounds}")
  return found


def progress(message: str) -> None:
  """Prints one line on standard error."""
  print(f"  {message}", file=sys.stderr, flush=True)


def spread(values: Sequence[float]) -> float:
  """The range as a share of the median."""
  return (max(values) - min(values)) / median(values)


def ratio(values: Sequence[float], others: Sequence[float]) -> float:
  """The median over the rounds of value / other; both are of the same round, so the machine's load is similar."""
  return median(value / other for value, other in zip(values, others, strict=True))


def bounds(values: Sequence[float], others: Sequence[float]) -> str:
  """The 95% bounds of `ratio`, by a bootstrap over the rounds."""
  pairs, draw = list(zip(values, others, strict=True)), random.Random(0)
  drawn = (zip(*draw.choices(pairs, k=len(pairs)), strict=True) for _ in range(10_000))
  cuts = quantiles((ratio(*sample) for sample in drawn), n=40)
  return f"{cuts[0]:.3f} to {cuts[-1]:.3f}"


def finish(program: str, rows: Sequence[Mapping[str, Any]], path: str | None, **more: Any) -> None:
  """Prints the table and the circumstances of the measurement, and writes both as JSON.

  Args:
    program: the name of the program, for the file.
    rows: the rows of the table; they may have different columns.
    path: the path of the JSON file; None means a file in the folder for temporary files.
    more: more entries of the JSON, such as the versions of the peers.
  """
  file = Path(path or os.path.join(tempfile.gettempdir(), f"{program}.json"))
  result = {"program": program, **context(), **more, "rows": list(rows)}
  print(table(rows))  # first, as it must not be lost with the file
  file.parent.mkdir(parents=True, exist_ok=True)
  file.write_text(json.dumps(result, indent=2) + "\n")
  print(f"\n{result['date']}, {result['machine']['processor']}, {result['machine']['cores']} cores")
  print(", ".join(f"{name} {version}" for name, version in flat({**result["versions"], **more.get("peers", {})})))
  print(f"{result['command']}\nwritten to {file}")
  if _LOAD_BEFORE > 0.5:
    print(
      f"note: the machine was busy before the start, with a load of {_LOAD_BEFORE:.1f}: measure again when it is not"
    )


def flat(versions: Mapping[str, Any]) -> list[tuple[str, str]]:
  """The names and versions of packages, out of nested groups."""
  pairs = [flat(found) if isinstance(found, Mapping) else [(name, found)] for name, found in versions.items()]
  return list(dict.fromkeys(itertools.chain.from_iterable(pairs)))


def context() -> dict[str, Any]:
  """The date, machine, command and versions of a measurement."""
  return {
    "date": datetime.now(UTC).isoformat(timespec="seconds"),
    "command": shlex.join(["python", *sys.argv]),
    "machine": {
      "processor": _processor(),
      "cores": len(os.sched_getaffinity(0)),
      "load_before": round(_LOAD_BEFORE, 2),
    },
    "versions": {
      "python": platform.python_version(),
      **versions("jax", "jaxlib", "flax", "numpy", "sentencepiece"),
    },
  }


def _processor() -> str:
  try:
    lines = Path("/proc/cpuinfo").read_text().split("\n")
  except OSError:
    lines = []
  names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
  return names[0] if names else platform.processor() or platform.machine()


def table(rows: Sequence[Mapping[str, Any]]) -> str:
  """The rows as a table in Markdown; a missing column of a row is empty."""
  columns = list(dict.fromkeys(name for row in rows for name in row))
  cells = [[_cell(row.get(name)) for name in columns] for row in rows]
  return tabulate(cells, columns, tablefmt="github", disable_numparse=True)


def write_table(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
  """Writes the table to a file, and prints it."""
  path.write_text(f"{table(rows)}\n")
  print(table(rows), flush=True)


def pyplot() -> Any:
  """Matplotlib's pyplot; the extra `benchmarks` installs it."""
  import matplotlib
  import matplotlib.pyplot as plt

  matplotlib.rcParams["svg.hashsalt"] = "transformer_jax"  # the same file from the same numbers
  return plt


def _cell(value: Any) -> str:
  match value:
    case None:
      return ""
    case bool() | str():
      return str(value)
    case float() if abs(value) < 100:
      return f"{value:.3g}"
    case _:
      return f"{value:,.0f}"
