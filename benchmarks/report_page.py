"""The time to write the report of a long run, and the time to open it in a browser.

    python benchmarks/report_page.py [--steps N] [--rounds N] [--chromium PROGRAM] [--json FILE]

The run folder has an invented log with a line for each step. "open" is a whole process of headless Chromium that loads
the page, draws it and takes a screenshot; "blank" is the same with an empty page. The page itself takes the difference.
"""

import argparse
import json
import math
import random
import subprocess
import tempfile
import time
from pathlib import Path

import programs
import report
from etils import epath

from transformer_jax import runs
from transformer_jax.config import Config
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.inside import report as page
from transformer_jax.runs import run_folder


def main() -> None:
  args = parse()
  with tempfile.TemporaryDirectory() as scratch:
    folder = Path(scratch)
    (folder / "blank.html").write_text("<!doctype html><title>blank</title>")
    run = make_run(folder / "run", args.steps)
    written, blank = folder / "run" / run_folder.REPORT, folder / "blank.html"

    def write() -> float:
      start = time.perf_counter()
      page.write([runs.open(run)], epath.Path(written))
      return time.perf_counter() - start

    def show(path: Path) -> float:
      start = time.perf_counter()
      options = ["--headless", "--no-sandbox", "--window-size=1280,2000", f"--screenshot={folder}/picture.png"]
      subprocess.run([args.chromium, *options, path.as_uri()], check=True, capture_output=True)
      return time.perf_counter() - start

    sides = {"write": write, "open": lambda: show(written), "blank": lambda: show(blank)}
    seconds = report.interleave(sides, args.rounds)
    size = written.stat().st_size
  seconds["open less blank"] = [a - b for a, b in zip(seconds["open"], seconds["blank"], strict=True)]
  rows = [
    {"side": side, "s": round(report.median(of), 2), "from": round(min(of), 2), "to": round(max(of), 2)}
    for side, of in seconds.items()
  ]
  report.finish("report_page", rows, args.json, steps=args.steps, bytes=size)
  print(f"{args.steps:,} steps, a page of {size:,} bytes")


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Speed of a run's report.", allow_abbrev=False)
  add = parser.add_argument
  add("--steps", type=int, default=100_000, metavar="N", help="lines of the log (default 100,000)")
  add("--rounds", type=int, default=5, metavar="N", help="(default 5)")
  add("--chromium", default="chromium", metavar="PROGRAM", help="the browser (default chromium)")
  report.add_arguments(parser, with_peers=False)
  return parser.parse_args()


def make_run(folder: Path, steps: int) -> Path:
  """A run folder whose log has a line for each step and fifty validations."""
  folder.mkdir()
  config = Config()
  tokenizer = SentencePieceTokenizer.learn(["abc"] * 10, 264)
  run_folder.begin_run(epath.Path(folder), config, tokenizer, [])
  draw = random.Random(0)
  with open(folder / "metrics.jsonl", "w") as log:
    for step in range(1, steps + 1):
      loss = 1.4 + 7 * step**-0.28 + draw.gauss(0, 0.05)
      line = {
        "loss": loss,
        "perplexity": math.exp(loss),
        "accuracy": 1 - loss / 9,
        "gradient_norm": math.exp(draw.gauss(0, 0.4)),
        "learning_rate": min(step**-0.5, step * 4000**-1.5),
        "tokens_per_second": draw.gauss(83_000, 2_000),
      }
      log.write(json.dumps({"step": step, "split": "train", "updates": 1, **line}) + "\n")
      if step % max(1, steps // 50) == 0:
        scores = {"loss": loss, "perplexity": math.exp(loss), "accuracy": 1 - loss / 9, "bleu": 40 - 40 / step**0.3}
        log.write(json.dumps({"step": step, "split": "validation", **scores}) + "\n")
  return folder


if __name__ == "__main__":
  programs.run(main)
