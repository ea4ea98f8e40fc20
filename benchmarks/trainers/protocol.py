"""How `training_speed.py` speaks with the trainers it measures; runs in every virtual environment.

Each trainer is a process of its own, idle while another is measured. The
exchange folder that it is started with holds `job.json`: sizes, recipe, and the
peers' batches, lists of [source, target] pairs of piece numbers that end with
EOS. It answers each line of standard input, a request, with a line of standard
output.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PAD, UNK, BOS, EOS = range(4)


def serve(load: Callable[[dict[str, Any]], Callable[..., Any]]) -> None:
  """Loads a trainer and answers requests until standard input ends.

  Args:
    load: gives `train(steps, **options)`, which makes the updates that follow,
      waits for the last one and returns what the answer has besides its seconds.
  """
  answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
  os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # libraries print to standard output
  train = load(json.loads((Path(sys.argv[1]) / "job.json").read_text()))
  print(json.dumps({"ready": True}), file=answers, flush=True)
  for line in sys.stdin:
    request = json.loads(line)
    start = time.perf_counter()
    found = train(**request)
    print(json.dumps({"seconds": time.perf_counter() - start, **found}), file=answers, flush=True)


def padded(sentences: list[list[int]], pad: int = PAD) -> np.ndarray:
  """int64 `[sentences, longest]`."""
  array = np.full((len(sentences), max(map(len, sentences))), pad, np.int64)
  for row, tokens in zip(array, sentences, strict=True):
    row[: len(tokens)] = tokens
  return array


def count(batches: list[list[list[list[int]]]]) -> dict[str, int]:
  """Real tokens of batches: no padding, no BOS."""
  pairs = [pair for batch in batches for pair in batch]
  return {"source_tokens": sum(len(pair[0]) for pair in pairs), "target_tokens": sum(len(pair[1]) for pair in pairs)}
