"""Tiny runs of `train.py` for benchmarks of many runs: they start in seconds and make hundreds of updates a second."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent

WORDS = ["ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf"]
TIMING = {"seconds", "tokens_per_second"}
_KEYS = {
  "data.corpus": "text",
  "data.test": "",
  "data.row_length": 16,
  "model.vocab_size": 290,
  "model.num_layers": 1,
  "model.d_model": 8,
  "model.d_ff": 16,
  "model.num_heads": 2,
  "model.dropout": 0.1,
  "train.batch_tokens": 32,
  "train.warmup_steps": 100,
  "train.ema_decay": 0.9,
  "evaluate.sentences": 8,
  "decode.beam_size": 1,
  "decode.max_source_length": 16,
  "decode.extra_length": 3,
}


class TinyRuns:
  """Runs on one small text, with a separate cache.

  Args:
    folder: the folder of the text and the cache.
    keys: keys of the config, in addition to those of this file.
  """

  def __init__(self, folder: Path, keys: Mapping[str, Any]):
    self._folder = folder
    self._keys = {**_KEYS, "data.train": folder / "train", "data.validation": folder / "validation", **keys}
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, pairs) in enumerate({"train": 500, "validation": 100}.items()):
      write_corpus(folder / name, pairs, seed)

  def command(self, workdir: Path) -> list[str]:
    """The command that begins a run and resumes it."""
    keys = [f"--config.{key}={value}" for key, value in self._keys.items()]
    return [sys.executable, str(ROOT / "train.py"), f"--workdir={workdir}", *keys]

  def start(self, workdir: Path, stderr: Any, environment: Mapping[str, str] | None = None) -> subprocess.Popen:
    """Starts the command; its exit status is that of `train.py`."""
    return subprocess.Popen(
      self.command(workdir),
      stdout=subprocess.DEVNULL,
      stderr=stderr,
      env={
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TRANSFORMER_JAX_CACHE": str(self._folder / "cache"),
        **(environment or {}),
      },
    )


def write_corpus(prefix: Path, pairs: int, seed: int = 0) -> None:
  """Writes the files `PREFIX.en` and `PREFIX.de`; the target is the reversed source."""
  random = np.random.default_rng(seed)
  sentences = [random.choice(WORDS, random.integers(1, 7)).tolist() for _ in range(pairs)]
  for language, ordered in (("en", sentences), ("de", [sentence[::-1] for sentence in sentences])):
    prefix.with_suffix(f".{language}").write_text("".join(" ".join(words) + "\n" for words in ordered))


def last_logged(workdir: Path) -> int:
  """The last step in a run's log; 0 without one."""
  lines = metrics(workdir)
  return lines[-1]["step"] if lines else 0


def metrics(workdir: Path) -> list[dict[str, Any]]:
  """The complete lines of `metrics.jsonl`, without the measured times."""
  try:
    lines = (workdir / "metrics.jsonl").read_text().split("\n")[:-1]
  except FileNotFoundError:
    return []
  return [{key: value for key, value in json.loads(line).items() if key not in TIMING} for line in lines]
