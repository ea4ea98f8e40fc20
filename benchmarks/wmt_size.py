"""Tokens per second and resident memory of reading, tokenising and packing a text of WMT's size, on 1 and 2 cores.

    python benchmarks/wmt_size.py --news FOLDER [--pairs 4500000] [--cores 1 2] [--json FILE]

FOLDER has news sets: NAME.en and NAME.de, plain or .xz. A pair of the text is the first half of one pair's words and
the second half of another's, both drawn by the seed. So the text has the sentence lengths of news, but only the words
of the news sets: a real text has more words that occur once.

Each measurement is a fresh process with an empty cache. It may use as many cores as its row says, and by that many
processes it encodes. The vocabulary, of 37,000 pieces from the news sets, is learned before. Memory is the sum of the
resident memory of all its processes, sampled 20 times a second. "main, CPU s" is the processor time of the process that
reads, orders and writes, and "all, CPU s" that of all processes.
"""

import argparse
import functools
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import programs
import report

from transformer_jax.config import Corpus, DataConfig
from transformer_jax.data import pipeline
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.text import TextPairs
from transformer_jax.runtime.errors import InputError

LANGUAGES = "en", "de"
PAGE = resource.getpagesize()


def main() -> None:
  args = parse()
  if args.folder:
    print(json.dumps(measure(args)))
    return
  answers: dict[int, list[dict[str, Any]]] = {cores: [] for cores in args.cores}
  with tempfile.TemporaryDirectory(dir=args.scratch) as folder:
    write_text(args, Path(folder))
    sides = {str(cores): functools.partial(run, cores, folder, found) for cores, found in answers.items()}
    report.interleave(sides, args.rounds)
  report.finish("wmt_size", [row(cores, found) for cores, found in answers.items()], args.json)


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Speed and memory of packing a large text.", allow_abbrev=False)
  add = parser.add_argument
  add("--cores", type=int, nargs="+", default=[1, 2], metavar="N", help="(default 1 2)")
  add("--row-length", type=int, default=256, metavar="N", help="(default 256)")
  add("--folder", help=argparse.SUPPRESS)  # the folder of one measurement, which runs in a separate process
  add_arguments(parser, pairs=4_500_000)
  return parser.parse_args()


def add_arguments(parser: argparse.ArgumentParser, pairs: int) -> None:
  """The options of the text and of the result; `pairs` is the default of --pairs."""
  add = parser.add_argument
  add("--news", required=True, metavar="FOLDER", help="has NAME.en and NAME.de, plain or .xz")
  add("--pairs", type=int, default=pairs, metavar="N", help="(default %(default)d)")
  add("--vocab-size", type=int, default=37_000, metavar="N", help="(default 37000)")
  add("--seed", type=int, default=0, metavar="N", help="(default 0)")
  add("--rounds", type=int, default=1, metavar="N", help="(default 1)")
  add("--scratch", metavar="DIR", help="where text and rows are (default: the folder for temporary files)")
  report.add_arguments(parser, with_peers=False)


def write_text(args: argparse.Namespace, folder: Path) -> list[tuple[str, str]]:
  """Writes the text and its vocabulary, and returns the pairs of the news sets."""
  news = pairs_of_news(args.news)
  sides = (side for pair in news for side in pair)
  tokenizer = SentencePieceTokenizer.learn(sides, args.vocab_size, key="--vocab-size")
  (folder / "tokenizer.model").write_bytes(tokenizer.to_bytes())
  write(news, args.pairs, args.seed, folder / "text")
  report.progress(f"{args.pairs:,} pairs are written")
  return news


def pairs_of_news(folder: str) -> list[tuple[str, str]]:
  """All pairs of the news sets in a folder."""
  source = LANGUAGES[0]
  names = sorted(
    {str(path).removesuffix(".xz").removesuffix(f".{source}") for path in Path(folder).glob(f"*.{source}*")}
  )
  if not names:
    raise InputError(f"--news {folder} has no NAME.{source}, plain or .xz: check the path")
  return [pair for name in names for pair in TextPairs(name, *LANGUAGES)]


def write(news: list[tuple[str, str]], pairs: int, seed: int, prefix: Path) -> None:
  """Writes recombined pairs to PREFIX.en and PREFIX.de."""
  halves = [tuple(half(text) for text in pair) for pair in news]
  source, target = (prefix.with_suffix(f".{language}") for language in LANGUAGES)
  with source.open("w") as sources, target.open("w") as targets:
    for first, second in drawn(len(news), pairs, seed):
      sources.write(f"{halves[first][0][0]} {halves[second][0][1]}\n")
      targets.write(f"{halves[first][1][0]} {halves[second][1][1]}\n")


def half(text: str) -> tuple[str, str]:
  """The two halves of a text's words."""
  words = text.split(" ")
  return " ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])


def drawn(count: int, pairs: int, seed: int) -> Iterator[tuple[int, int]]:
  """Two numbers below `count` for each pair."""
  generator = random.Random(seed)
  for _ in range(pairs):
    yield generator.randrange(count), generator.randrange(count)


def run(cores: int, folder: str, answers: list[dict[str, Any]]) -> float:
  """Measures in a fresh process that may use `cores` cores."""
  process = subprocess.Popen(
    [sys.executable, *sys.argv, "--folder", folder],
    stdout=subprocess.PIPE,
    text=True,
    preexec_fn=lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores]),
  )
  peak = 0
  while process.poll() is None:
    peak = max(peak, sum(map(resident, family(process.pid))))
    time.sleep(0.05)
  if process.returncode:
    sys.exit(process.returncode)
  assert process.stdout
  answer = json.loads(process.stdout.read())
  answers.append(answer | {"MB": peak / 1e6})
  return answer["s"]


def family(process: int) -> list[int]:
  """A process and all that descend from it."""
  found = [process]
  for number in found:
    try:
      children = [path.read_text() for path in Path(f"/proc/{number}/task").glob("*/children")]
    except OSError:  # it has ended
      continue
    found += map(int, " ".join(children).split())
  return found


def resident(process: int) -> int:
  """The bytes of a process in memory."""
  try:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE
  except OSError:
    return 0


def measure(args: argparse.Namespace) -> dict[str, Any]:
  """The figures of one process."""
  folder = Path(args.folder)
  tokenizer = SentencePieceTokenizer.load(folder / "tokenizer.model")
  with tempfile.TemporaryDirectory(dir=folder) as cache:
    data = DataConfig(
      corpus=Corpus.TEXT,
      source_language=LANGUAGES[0],
      target_language=LANGUAGES[1],
      train=str(folder / "text"),
      row_length=args.row_length,
      cache_dir=cache,
    )
    start, before = time.perf_counter(), seconds(resource.RUSAGE_SELF)
    packed = pipeline.packed_rows(data, data.train, tokenizer)
    found = {"s": time.perf_counter() - start, "main": seconds(resource.RUSAGE_SELF) - before}
    found["all"] = found["main"] + seconds(resource.RUSAGE_CHILDREN)
    print(packed.report.describe(args.row_length), file=sys.stderr)
    return found | {"tokens": packed.report.tokens, "padding": packed.report.padding(args.row_length)}


def seconds(who: int) -> float:
  """The processor time of this process, or of its children that have ended."""
  used = resource.getrusage(who)
  return used.ru_utime + used.ru_stime


def row(cores: int, found: list[dict[str, Any]]) -> dict[str, Any]:
  """A row of the table."""

  def median(name: str) -> float:
    return report.median([answer[name] for answer in found])

  return {
    "cores": cores,
    "s": median("s"),
    "spread": report.spread([answer["s"] for answer in found]),
    "tokens/s": median("tokens") / median("s"),
    "main, CPU s": median("main"),
    "all, CPU s": median("all"),
    "peak, MB": max(answer["MB"] for answer in found),
    "padding, %": 100 * median("padding"),
  }


if __name__ == "__main__":
  programs.run(main)
