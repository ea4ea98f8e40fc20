"""Pairs per second of `transformer-jax prepare` on 1 and 2 processes, its files' size, and a plan for a larger text.

    python benchmarks/prepare_speed.py --news FOLDER [--pairs 1000000] [--workers 1 2] [--plan 1000000000] [--json FILE]

It needs the extras `beam` and `benchmarks`. The text is that of `wmt_size.py`, and so are the vocabulary and the row
length. Each measurement is the whole command, on as many cores as it has processes. "start, s" is the same command for
a text of 1,000 pairs; "pairs/s" and "CPU us/pair", the processor time of all its processes, leave it out. Memory is
that of all processes together.
"read" is the rate at which one process reads the rows in the order of training, in positions of both sides.

The plan counts the bytes and the processor time per pair of the last row, for files of a million pairs. It says
nothing of disks and networks. --price is that of an hour of a core with its memory.
"""

import argparse
import functools
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import programs
import report
import wmt_size
from tabulate import tabulate

from transformer_jax.config import Corpus, DataConfig
from transformer_jax.data import pipeline
from transformer_jax.data.batches import Batches
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer

FEW = 1000  # the pairs of the text that tells the time of the start
BATCH = 98  # rows: the paper's 25,000 tokens
LARGE_PART = 1_000_000


def main() -> None:
  args = parse()
  answers: dict[int, list[dict[str, float]]] = {workers: [] for workers in args.workers}
  with tempfile.TemporaryDirectory(dir=args.scratch) as name:
    folder = Path(name)
    news = wmt_size.write_text(args, folder)
    wmt_size.write(news, FEW, args.seed, folder / "few")
    sides = {str(workers): functools.partial(run, workers, folder, args, found) for workers, found in answers.items()}
    report.interleave(sides, args.rounds)
  rows = [row(workers, args.pairs, found) for workers, found in answers.items()]
  if args.plan:
    print(tabulate([*plan(args.plan, args.price, rows[-1]).items()], intfmt=",", floatfmt=",.1f"))
  report.finish("prepare_speed", rows, args.json)


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Speed of preparing a large text.", allow_abbrev=False)
  add = parser.add_argument
  add("--workers", type=int, nargs="+", default=[1, 2], metavar="N", help="(default 1 2)")
  add("--part", type=int, default=62_500, metavar="N", help="the lines of a part (default 62500)")
  add("--flags", default="", metavar="TEXT", help="more flags of prepare, as in '--duplicates=pairs --max-ratio=3'")
  add("--row-length", type=int, default=256, metavar="N", help="(default 256)")
  add("--plan", type=int, metavar="N", help="the pairs of a text to plan for")
  add("--price", type=float, default=0.07, metavar="P", help="of an hour of a core, with memory (default 0.07)")
  wmt_size.add_arguments(parser, pairs=1_000_000)
  return parser.parse_args()


def run(workers: int, folder: Path, args: argparse.Namespace, answers: list[dict[str, float]]) -> float:
  """Prepares both texts, and reads the rows of the larger one."""
  start = prepare(workers, folder, "few", args)
  found = prepare(workers, folder, "text", args)
  files = [*(folder / "prepared").glob("*.array_record")]
  found |= {
    "start": start["s"],
    "start cpu": start["cpu"],
    "bytes": sum(path.stat().st_size for path in files),
    "read": read(folder, args),
  }
  answers.append(found)
  return found["s"]


def prepare(workers: int, folder: Path, text: str, args: argparse.Namespace) -> dict[str, float]:
  """The seconds, the processor time and the memory of the command; its result is in the folder `prepared`."""
  shutil.rmtree(folder / "prepared", ignore_errors=True)
  keys = {
    "data.train": folder / text,
    "data.tokenizer": folder / "tokenizer.model",
    "data.row_length": args.row_length,
    "model.vocab_size": args.vocab_size,
  }
  flags = [f"--config.{key}={value}" for key, value in keys.items()]
  flags += [f"--workers={workers}", f"--part={args.part}", f"--output={folder / 'prepared'}", *args.flags.split()]
  before, begin, peak = wmt_size.seconds(resource.RUSAGE_CHILDREN), time.perf_counter(), 0
  process = subprocess.Popen(
    [sys.executable, "-m", "transformer_jax", "prepare", "--config=text", *flags],
    stdout=sys.stderr,
    preexec_fn=lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:workers]),
  )
  while process.poll() is None:
    peak = max(peak, sum(map(wmt_size.resident, wmt_size.family(process.pid))))
    time.sleep(0.05)
  if process.returncode:
    sys.exit(process.returncode)
  used = wmt_size.seconds(resource.RUSAGE_CHILDREN) - before
  return {"s": time.perf_counter() - begin, "cpu": used, "MB": peak / 1e6}


def read(folder: Path, args: argparse.Namespace, most: float = 5.0) -> float:
  """The positions of both sides that are read a second, in the order of training."""
  data = DataConfig(corpus=Corpus.PREPARED, train=str(folder / "prepared"), validation="", row_length=args.row_length)
  packed = pipeline.packed_rows(data, data.train, SentencePieceTokenizer.load(folder / "tokenizer.model"))
  batches = Batches(packed, BATCH, seed=0)
  assert batches[0].rows.any()
  begin, step = time.perf_counter(), 0
  while time.perf_counter() - begin < most:
    step += 1
    assert len(batches[step].rows) == BATCH
  return step * BATCH * 2 * args.row_length / (time.perf_counter() - begin)


def row(workers: int, pairs: int, found: list[dict[str, float]]) -> dict[str, Any]:
  """A row of the table."""

  def median(name: str) -> float:
    return report.median([answer[name] for answer in found])

  return {
    "workers": workers,
    "s": median("s"),
    "spread": report.spread([answer["s"] for answer in found]),
    "start, s": median("start"),
    "pairs/s": (pairs - FEW) / (median("s") - median("start")),
    "CPU us/pair": 1e6 * (median("cpu") - median("start cpu")) / (pairs - FEW),
    "peak, MB": max(answer["MB"] for answer in found),
    "bytes/pair": median("bytes") / pairs,
    "read, M/s": median("read") / 1e6,
  }


def plan(pairs: int, price: float, measured: dict[str, Any]) -> dict[str, float]:
  """What a text of this number of pairs takes."""
  hours = pairs * measured["CPU us/pair"] / 3.6e9
  return {
    "pairs": pairs,
    "files of a million pairs": -(-pairs // LARGE_PART),
    "GB in all": pairs * measured["bytes/pair"] / 1e9,
    "MB in a file": LARGE_PART * measured["bytes/pair"] / 1e6,
    "core hours": hours,
    "hours on 64 cores": hours / 64,
    "cost": hours * price,
  }


if __name__ == "__main__":
  programs.run(main)
