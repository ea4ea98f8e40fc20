"""Tokens per second of the input pipeline alone, and the time to its first batch, cold and cached.

    python benchmarks/input_speed.py --data PREFIX [--json FILE]

PREFIX.en and PREFIX.de, plain or .xz, are the training text. Each measurement is a fresh process. "cold" has an empty
cache: it learns the vocabulary, encodes and packs the text, and writes rows. "packed" has the vocabulary but no rows,
and "cached" has both, like every start of a run except the first. The seconds to the first batch begin with the first
call and exclude the import of libraries, which `startup.py` measures. Tokens are those of both sides, with each
sentence's EOS and without padding; batches are host arrays in the order of training. Passes over the corpus are
repeated for --seconds.
"""

import argparse
import functools
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import programs
import report
import text

from transformer_jax.data import packing, pipeline
from transformer_jax.data.batches import Batches

STATES = ("cold", "packed", "cached")


def main() -> None:
  args = parse()
  if args.folder:
    print(json.dumps(measure(args)))
    return
  answers: dict[str, list[dict[str, Any]]] = {state: [] for state in STATES}
  with tempfile.TemporaryDirectory() as scratch:
    folder = Path(scratch) / "cache"
    report.interleave({state: functools.partial(run, state, folder, answers) for state in STATES}, args.rounds)
  report.finish("input_speed", [row(state, found) for state, found in answers.items()], args.json)


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Speed of the input pipeline.", allow_abbrev=False)
  add = parser.add_argument
  text.add_arguments(parser)
  add("--vocab-size", type=int, default=9700, metavar="N", help="(default 9700)")
  add("--row-length", type=int, default=64, metavar="N", help="(default 64)")
  add("--batch-tokens", type=int, default=4096, metavar="N", help="positions of a batch on each side (default 4096)")
  add("--seconds", type=float, default=5.0, metavar="S", help="that batches are read for (default 5)")
  add("--rounds", type=int, default=5, metavar="N", help="(default 5)")
  add("--folder", help=argparse.SUPPRESS)  # the cache of one measurement, which runs in a separate process
  report.add_arguments(parser, with_peers=False)
  return parser.parse_args()


def run(state: str, folder: Path, answers: dict[str, list[dict[str, Any]]]) -> float:
  """Measures in a fresh process, with the part of the previous cache that belongs to the state."""
  for left in {"cold": [folder], "packed": [folder / "rows"], "cached": []}[state]:
    shutil.rmtree(left, ignore_errors=True)
  folder.mkdir(exist_ok=True)
  command = [sys.executable, *sys.argv, "--folder", str(folder)]
  answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
  answers[state].append(answer)
  return answer["first batch"]


def measure(args: argparse.Namespace) -> dict[str, Any]:
  """The figures of one process, with `args.folder` as its cache."""
  tokenizer_file = Path(args.folder) / "tokenizer.model"
  tokenizer_name = str(tokenizer_file) if tokenizer_file.exists() else ""
  data = text.config(args, args.row_length, args.folder, tokenizer=tokenizer_name)
  start = time.perf_counter()
  tokenizer = pipeline.learn_tokenizer(data, args.vocab_size)
  learned = time.perf_counter()
  packed = pipeline.packed_rows(data, data.train, tokenizer)
  ready = time.perf_counter()
  batches = Batches(packed, args.batch_tokens // args.row_length, 0)
  first = batches[0]
  got = time.perf_counter()
  assert np.count_nonzero(first.rows[:, packing.TARGET])
  if not data.tokenizer:
    tokenizer_file.write_bytes(tokenizer.to_bytes())
  tokens = packed.report.tokens
  return {
    "first batch": got - start,
    "vocabulary": learned - start,
    "rows": ready - learned,
    "packing tokens/s": tokens / (ready - learned),
    "padding": packed.report.padding(args.row_length),
    "tokens/s": rate(batches, args.seconds),
  }


def rate(batches: Batches, seconds: float) -> float:
  """Tokens per second, without padding, of batches one after the other; counting them is not timed."""
  tokens, spent, step = 0, 0.0, 1
  while spent < seconds:
    start = time.perf_counter()
    some = [batches[i] for i in range(step, step + 16)]
    spent += time.perf_counter() - start
    tokens += sum(np.count_nonzero(batch.rows[:, [packing.SOURCE, packing.TARGET]]) for batch in some)
    step += 16
  return tokens / spent


def row(state: str, found: list[dict[str, Any]]) -> dict[str, Any]:
  """A row of the table."""

  def median(name: str) -> float:
    return report.median([answer[name] for answer in found])

  return {
    "start": state,
    "s to first batch": median("first batch"),
    "spread": report.spread([answer["first batch"] for answer in found]),
    "vocabulary, s": median("vocabulary"),
    "rows, s": median("rows"),
    "packing, tokens/s": None if state == "cached" else median("packing tokens/s"),
    "batches, tokens/s": median("tokens/s"),
    "spread of batches": report.spread([answer["tokens/s"] for answer in found]),
    "padding, %": 100 * median("padding"),
  }


if __name__ == "__main__":
  programs.run(main)
