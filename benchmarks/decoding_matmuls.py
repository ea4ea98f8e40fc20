"""The matmuls with weights that a translation cannot do without, and the time of the whole: how far from the limit.

    python benchmarks/decoding_matmuls.py --workdir RUN [--workdir LARGER_RUN] --data FILE.en [--beams 4 1]
      [--sentences 250] [--rounds 3] [--json FILE]

RUN is a run folder of train.py in float32, and FILE, plain or .xz, has one source sentence per line. "translation" is
one call for all sentences, text to text, as "best batch" of decoding_speed.py. "matmuls" are those with weights: the
encoder's and the decoder's cross-attention keys and values for each source token, and the decoder's and the output
layer's for each token of each output and of each hypothesis of its beam. Nothing is computed for padding, for
hypotheses of no use, or for products of activations. They have --rows rows at a time, on all cores, one shape after the
other, with XLA. So "matmuls / translation" is the share of the limit that a translation reaches.
"""

import argparse
import itertools
import time
from collections.abc import Callable
from typing import Any

import programs
import report
from etils import epath
from trainers import matmuls

from transformer_jax import runs
from transformer_jax.data.text import lines_of
from transformer_jax.decoding.translator import Translator
from transformer_jax.model.config import ModelConfig
from transformer_jax.runtime.process import use_huge_pages


def main() -> None:
  args = parse()
  rows = [row for workdir in args.workdir for beam in args.beams for row in rows_of(workdir, beam, args)]
  report.finish("decoding_matmuls", rows, args.json)


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="The limit of the speed of translation.", allow_abbrev=False)
  add = parser.add_argument
  add("--workdir", required=True, action="append", metavar="DIR", help="a run folder; may be repeated")
  add("--data", required=True, metavar="FILE", help="source sentences, one per line")
  add("--beams", type=int, nargs="+", default=[4, 1], metavar="N", help="(default 4 1)")
  add("--sentences", type=int, default=250, metavar="N", help="(default 250)")
  add(
    "--rows", type=int, nargs="+", default=[16, 64, 256, 1024], metavar="N", help="of a matmul (default 16 64 256 1024)"
  )
  add("--rounds", type=int, default=3, metavar="N", help="(default 3)")
  report.add_arguments(parser, with_peers=False)
  return parser.parse_args()


def rows_of(workdir: str, beam: int, args: argparse.Namespace) -> list[dict[str, Any]]:
  """The row of the translation, and one for each number of rows of a matmul."""
  run = runs.open(workdir)
  translator = Translator.load(run)
  lines = list(itertools.islice(lines_of(args.data), args.sentences))
  written = 0

  def translation() -> float:
    nonlocal written
    start = time.perf_counter()
    found = translator.translate(lines, beam_size=beam, patience=1.0, return_scores=True)
    seconds = time.perf_counter() - start
    written = sum(translation.tokens for translation in found)
    return seconds

  translation()
  read = sum(len(tokens) + 1 for tokens in run.tokenizer.source.encode_batch(lines))  # an EOS each
  sides: dict[str, Callable[[], float]] = {"translation": translation}
  model = run.config.model
  assert isinstance(model, ModelConfig)
  for rows in args.rows:
    sides[f"matmuls of {rows:,} rows"] = seconds_of(weights(model, read, written * beam, rows))
  seconds = report.interleave(sides, args.rounds)
  operations = 2 * sum(times * m * k * n for times, m, k, n in weights(model, read, written * beam, 1))
  return [
    {
      "run": epath.Path(workdir).name,
      "beam": str(beam),
      "what": name,
      "s": report.median(found),
      "spread": report.spread(found),
      "GFLOP/s": operations / report.median(found) / 1e9,
      "matmuls / translation": report.ratio(found, seconds["translation"]) if name != "translation" else None,
    }
    for name, found in seconds.items()
  ]


def weights(model: ModelConfig, read: int, written: int, rows: int) -> list[tuple[float, int, int, int]]:
  """[times, m, k, n] of the matmuls with weights for `read` source tokens and `written` target tokens."""
  d, layers = model.d_model, model.num_layers
  feed_forward = (d, model.d_ff), (model.d_ff, d)
  parts = (
    (read, layers, [*[(d, d)] * 4, *feed_forward]),
    (read, layers, [(d, d)] * 2),  # keys and values of the decoder's attention over the source
    (written, layers, [*[(d, d)] * 6, *feed_forward]),
    (written, 1, [(d, model.vocab_size)]),
  )
  return [(count * tokens / rows, rows, k, n) for tokens, count, shapes in parts for k, n in shapes]


def seconds_of(shapes: list[tuple[float, int, int, int]]) -> Callable[[], float]:
  """A function that returns the seconds of all matmuls."""
  import numpy as np

  random, multiply, matrices = np.random.default_rng(0), matmuls.in_xla("float32"), {}
  for _, m, k, n in shapes:
    if (m, k, n) not in matrices:
      matrices[m, k, n] = multiply(
        random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)
      )

  def seconds() -> float:
    each = {shape: matmuls.median_seconds(run) for shape, run in matrices.items()}
    return sum(times * each[m, k, n] for times, m, k, n in shapes)

  return seconds


if __name__ == "__main__":
  use_huge_pages()
  programs.run(main)
