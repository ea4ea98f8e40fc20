"""Sampling against greedy search: lines translated per second, with one model, one option after another.

    python benchmarks/sampling.py --workdir models/en-de --source FILE [--lines N] [--rounds N] [--json FILE]

Each round translates the first N lines of FILE once with each option, so that all options meet the same machine. The
first round compiles and is not counted. `of greedy` is the rate divided by that of greedy search in the same round: the
median of the rounds, and their range.
"""

import argparse
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import programs
import report

from transformer_jax.data.text import lines_of
from transformer_jax.decoding.sampling import SamplingOptions
from transformer_jax.decoding.translator import Translator
from transformer_jax.runtime.process import use_huge_pages

OPTIONS: dict[str, dict[str, Any]] = {
  "greedy": {"beam_size": 1},
  "sampling": {"sampling": SamplingOptions()},
  "temperature 0.7": {"sampling": SamplingOptions(temperature=0.7)},
  "top-k 10": {"sampling": SamplingOptions(top_k=10)},
  "top-p 0.9": {"sampling": SamplingOptions(top_p=0.9)},
}


def main() -> None:
  parser = argparse.ArgumentParser(description="Sampling against greedy search.", allow_abbrev=False)
  parser.add_argument("--workdir", required=True)
  parser.add_argument("--source", required=True)
  parser.add_argument("--lines", type=int, default=1000)
  parser.add_argument("--rounds", type=int, default=5)
  report.add_arguments(parser, with_peers=False)
  args = parser.parse_args()
  use_huge_pages()
  translator = Translator.load(args.workdir)
  lines = list(itertools.islice(lines_of(args.source), args.lines))
  tokens: dict[str, int] = {}

  def side(name: str) -> Callable[[], float]:
    def run() -> float:
      start = time.perf_counter()
      found = translator.translate(lines, return_scores=True, **OPTIONS[name])
      tokens[name] = sum(translation.tokens for translation in found)
      return time.perf_counter() - start

    return run

  sides = {name: side(name) for name in OPTIONS}
  report.interleave(sides, 1)
  seconds = report.interleave(sides, args.rounds)
  rows = [row(name, len(lines), tokens[name], seconds) for name in OPTIONS]
  report.finish("sampling", rows, args.json, lines=len(lines), rounds=args.rounds)


def row(name: str, lines: int, tokens: int, seconds: dict[str, list[float]]) -> dict[str, Any]:
  """A row of the table."""
  ratios = [one / other for one, other in zip(seconds["greedy"], seconds[name], strict=True)]
  return {
    "option": name,
    "lines/s": lines / report.median(seconds[name]),
    "of greedy": statistics.median(ratios),
    "from": min(ratios),
    "to": max(ratios),
    "tokens": tokens,
  }


if __name__ == "__main__":
  programs.run(main)
