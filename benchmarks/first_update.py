"""Seconds from the start of training to its first update, for a text of WMT's size, in shards and packed as a whole.

    python benchmarks/first_update.py --news FOLDER [--pairs 4500000] [--shard-pairs 500000] [--json FILE]

The text is that of `wmt_size.py`, and so is the vocabulary, which is given. Each measurement is the command `train.py`
with the model of `configs/multi30k.py:plain`, in a fresh process that has neither packed rows nor compiled programs
yet. It ends when the first update is reported.
"""

import argparse
import functools
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import programs
import report
import wmt_size

HERE = Path(__file__).resolve().parent.parent
FIRST = re.compile(r"step 1: loss")


def main() -> None:
  args = parse()
  with tempfile.TemporaryDirectory(dir=args.scratch) as name:
    folder = Path(name)
    wmt_size.write_text(args, folder)
    sides = {shard: functools.partial(seconds_to_first, folder, args, shard) for shard in (0, args.shard_pairs)}
    found = report.interleave({str(shard): run for shard, run in sides.items()}, args.rounds)
  rows = [
    {"pairs of a shard": int(shard) or "all", "s": report.median(seconds), "spread": report.spread(seconds)}
    for shard, seconds in found.items()
  ]
  report.finish("first_update", rows, args.json)


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Time to the first update.", allow_abbrev=False)
  add = parser.add_argument
  add("--shard-pairs", type=int, default=500_000, metavar="N", help="(default 500000)")
  add("--batch-tokens", type=int, default=4096, metavar="N", help="(default 4096)")
  wmt_size.add_arguments(parser, pairs=4_500_000)
  return parser.parse_args()


def seconds_to_first(folder: Path, args: argparse.Namespace, shard_pairs: int) -> float:
  """Trains until the first update is reported."""
  with tempfile.TemporaryDirectory(dir=folder) as name:
    keys = {
      "data.corpus": "text",
      "data.source_language": wmt_size.LANGUAGES[0],
      "data.target_language": wmt_size.LANGUAGES[1],
      "data.train": folder / "text",
      "data.validation": "",
      "data.test": "",
      "data.tokenizer": folder / "tokenizer.model",
      "data.cache_dir": Path(name) / "cache",
      "data.shard_pairs": shard_pairs,
      "model.vocab_size": args.vocab_size,
      "train.batch_tokens": args.batch_tokens,
      "train.log_every": 1,
      "evaluate.every": 0,
    }
    command = [sys.executable, str(HERE / "train.py"), f"--config={HERE / 'configs' / 'multi30k.py:plain'}"]
    command += [f"--workdir={Path(name) / 'run'}", *(f"--config.{key}={value}" for key, value in keys.items())]
    # Each start compiles: the cache of an earlier one would favour the later.
    own = {"PYTHONPATH": str(HERE), "TRANSFORMER_JAX_CACHE": str(Path(name) / "compiled")}
    environment = {key: value for key, value in os.environ.items() if key != "JAX_COMPILATION_CACHE_DIR"} | own
    start = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr
    said = []
    for line in process.stderr:
      said.append(line)
      if FIRST.match(line):
        seconds = time.perf_counter() - start
        process.kill()
        process.communicate()
        return seconds
  raise SystemExit(f"the training ended before its first update:\n{''.join(said)}")


if __name__ == "__main__":
  programs.run(main)
