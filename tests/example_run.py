"""A corpus for runs of a few updates, and what of their logs does not depend on the clock."""

import json
from pathlib import Path

from benchmarks import tiny

TIMING = {"seconds", "tokens_per_second"}


def write_corpus(folder: Path) -> str:
  """The name of a corpus in which the target is the source backwards."""
  tiny.write_corpus(folder / "text", pairs=211)
  return str(folder / "text")


def metrics_of(workdir: Path) -> list[dict]:
  """The lines of a run's log, without times."""
  lines = (workdir / "metrics.jsonl").read_text().split("\n")[:-1]
  return [{key: value for key, value in json.loads(line).items() if key not in TIMING} for line in lines]
