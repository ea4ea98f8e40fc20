"""A corpus for runs of a few updates, and what of their logs does not depend on the clock."""

import json
from pathlib import Path

import numpy as np

TIMING = {"seconds", "tokens_per_second"}

_WORDS = ["ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf"]


def write_corpus(folder: Path) -> str:
  """The name of a corpus in which the target is the source backwards."""
  random = np.random.default_rng(0)
  sentences = [random.choice(_WORDS, random.integers(1, 7)).tolist() for _ in range(211)]
  (folder / "text.en").write_text("".join(" ".join(words) + "\n" for words in sentences))
  (folder / "text.de").write_text("".join(" ".join(reversed(words)) + "\n" for words in sentences))
  return str(folder / "text")


def metrics_of(workdir: Path) -> list[dict]:
  """The lines of a run's log, without times."""
  lines = (workdir / "metrics.jsonl").read_text().split("\n")[:-1]
  return [{key: value for key, value in json.loads(line).items() if key not in TIMING} for line in lines]
