"""A run of `train.py` that starts in seconds and makes hundreds of updates a second, for what has to be done often."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent

WORDS = ["ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf"]
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
  """Runs on one small text, with a cache of their own.

  Args:
    folder: for the text and the cache.
    keys: of the config, besides those of this file.
  """

  def __init__(self, folder: Path, keys: Mapping[str, Any]):
    self._folder = folder
    self._keys = {**_KEYS, "data.train": folder / "train", "data.validation": folder / "validation", **keys}
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, pairs) in enumerate({"train": 500, "validation": 100}.items()):
      write_corpus(folder / name, pairs, seed)

  def command(self, workdir: Path) -> list[str]:
    """The one command that begins a run and goes on with it."""
    keys = [f"--config.{key}={value}" for key, value in self._keys.items()]
    return [sys.executable, str(ROOT / "train.py"), f"--workdir={workdir}", *keys]

  def start(self, workdir: Path, stderr: Any, environment: Mapping[str, str] | None = None) -> subprocess.Popen:
    """Starts it; its exit status is that of `train.py`."""
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
  """The files `PREFIX.en` and `PREFIX.de`: the target is the source backwards."""
  random = np.random.default_rng(seed)
  sentences = [random.choice(WORDS, random.integers(1, 7)).tolist() for _ in range(pairs)]
  for language, ordered in (("en", sentences), ("de", [sentence[::-1] for sentence in sentences])):
    prefix.with_suffix(f".{language}").write_text("".join(" ".join(words) + "\n" for words in ordered))
