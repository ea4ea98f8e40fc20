"""How time grows with length, vocabulary, layers and batch in training, and with beam and length in decoding.

    python benchmarks/scaling.py [--json FILE]

Each sweep changes one size of a small model and keeps the others. The table compares the time with the arithmetic
alone: the multiplications and additions of the matmuls, by the terms of Table 1 of the paper and those that it leaves
out. For one sequence of n tokens on each side and one layer of each stack they are

    self-attention    4 n^2 d     scores and weighted values: Table 1's O(n^2 d)
    projections       8 n d^2     queries, keys, values and output
    feed-forward      4 n d d_ff
    output layer      2 n d V     once

and three times that with the backward pass. A layer of the encoder has one attention, a layer of the decoder two.
"time" and "formula" are relative to the sweep's first point. If they agree, arithmetic takes the time. If the time
grows more slowly, something else does (dispatch, memory, random bits, work that is more efficient at a larger size).

- Training: `train_step` on packed rows of random tokens. The length sweep keeps the number of tokens of a batch, so
  that the formula grows only as n in n^2 d / n. The arithmetic of whole rows is counted, as no other is done.
- Attention: eq. 1 alone, forward only, which is Table 1's first row without anything else.
- Decoding: `search` for outputs of a given length, with a model that makes EOS improbable. The formula counts the
  tokens before each token of a hypothesis, on average half the output. The computed arrays always have the shape of
  all positions of all hypotheses, and most of it is masked.
"""

import argparse
import dataclasses
import functools
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
import programs
import report

from transformer_jax.analysis import requirements
from transformer_jax.config import Config, DataConfig, LengthPenalty, TrainConfig
from transformer_jax.data.batches import Batch
from transformer_jax.decoding.programs import SearchOptions, search
from transformer_jax.model.attention import scaled_dot_product_attention
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.masking import causal_mask
from transformer_jax.model.special_tokens import EOS
from transformer_jax.model.transformer import Transformer
from transformer_jax.runtime import devices
from transformer_jax.runtime.process import use_huge_pages
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.initialization import init_params
from transformer_jax.training.step import init_state, train_step

MODEL = ModelConfig(vocab_size=8000, num_layers=2, d_model=128, d_ff=512, num_heads=4)
TOKENS, LENGTH = 4096, 64  # the tokens of a training batch on each side, and of its rows
SENTENCES, SOURCE = 8, 16  # the sentences of a decoding batch, and the tokens of a source
BEAM, OUTPUT = 4, 32


class Point(NamedTuple):
  """One size of a sweep: `run` does the work once and waits for it; `flops` is the value of the formula."""

  sweep: str
  size: int
  flops: float
  run: Callable[[], Any]


def main() -> None:
  args = parse()
  rows = []
  for name, sweep in SWEEPS.items():
    if name in args.sweeps:
      report.progress(name)
      rows += measure(list(sweep()), args.rounds)
  report.finish("scaling", rows, args.json)


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="How time grows.", allow_abbrev=False)
  names = ", ".join(SWEEPS)
  parser.add_argument("--sweeps", nargs="+", default=list(SWEEPS), choices=SWEEPS, metavar="NAME", help=f"of {names}")
  parser.add_argument("--rounds", type=int, default=7, metavar="N", help="(default 7)")
  report.add_arguments(parser, with_peers=False)
  return parser.parse_args()


def measure(points: list[Point], rounds: int) -> list[dict[str, Any]]:
  """The rows of a sweep; its points are measured in turns."""
  for point in points:
    point.run()  # compiles
  seconds = report.interleave({str(p.size): functools.partial(timed, p.run) for p in points}, rounds)
  first = points[0]
  return [
    {
      "sweep": point.sweep,
      "size": point.size,
      "ms": 1000 * report.median(seconds[str(point.size)]),
      "spread": report.spread(seconds[str(point.size)]),
      "GFLOP/s": point.flops / report.median(seconds[str(point.size)]) / 1e9,
      "time": report.ratio(seconds[str(point.size)], seconds[str(first.size)]),
      "formula": point.flops / first.flops,
    }
    for point in points
  ]


def timed(run: Callable[[], Any]) -> float:
  start = time.perf_counter()
  run()
  return time.perf_counter() - start


def training_length() -> Iterator[Point]:
  for length in (32, 64, 128, 256, 512):
    yield training_point("training, length", length, MODEL, TOKENS // length, length)


def training_vocabulary() -> Iterator[Point]:
  for size in (2000, 4000, 8000, 16000, 32000):
    model = dataclasses.replace(MODEL, vocab_size=size)
    yield training_point("training, vocabulary", size, model, TOKENS // LENGTH, LENGTH)


def training_layers() -> Iterator[Point]:
  for layers in (1, 2, 4, 8):
    model = dataclasses.replace(MODEL, num_layers=layers)
    yield training_point("training, layers", layers, model, TOKENS // LENGTH, LENGTH)


def training_batch() -> Iterator[Point]:
  for rows in (8, 16, 32, 64, 128):
    yield training_point("training, rows of a batch", rows, MODEL, rows, LENGTH)


def training_point(sweep: str, size: int, model: ModelConfig, rows: int, length: int) -> Point:
  """`train_step` on `rows` full rows with one segment each; the segments do not change the amount of work."""
  config = Config(model=model, data=DataConfig(row_length=length), train=TrainConfig(batch_tokens=rows * length))
  tokens = np.random.default_rng(0).integers(EOS + 1, model.vocab_size, (rows, 2, length))
  segments = np.ones_like(tokens)
  packed = np.stack([tokens[:, 0], segments[:, 0], tokens[:, 1], segments[:, 1]], axis=1).astype(np.int32)
  batch = devices.shard(Batch(packed, np.arange(rows, dtype=np.int32)))
  step = devices.over_devices(functools.partial(train_step, config, TASK), out_axes=None, donate_state=True)
  state = [devices.replicate(init_state(config, TASK))]

  def run() -> None:
    state[0], _ = jax.block_until_ready(step(state[0], batch))

  return Point(sweep, size, requirements.flops(config).step, run)


def attention_length() -> Iterator[Point]:
  for length in (64, 128, 256, 512, 1024):
    yield attention_point("eq. 1, length", length, length, MODEL.d_model)


def attention_width() -> Iterator[Point]:
  for d_model in (64, 128, 256, 512):
    yield attention_point("eq. 1, d_model", d_model, 256, d_model)


def attention_point(sweep: str, size: int, length: int, d_model: int) -> Point:
  """softmax(Q K^T / sqrt(d_k)) V for eight sequences."""
  heads, sequences = MODEL.num_heads, 8
  shape = (3, sequences, length, heads, d_model // heads)
  query, key, value = jax.random.normal(jax.random.key(0), shape)
  attend = jax.jit(jax.vmap(scaled_dot_product_attention, (0, 0, 0, None)))
  mask = causal_mask(length)
  return Point(
    sweep,
    size,
    sequences * 4 * length**2 * d_model,
    lambda: attend(query, key, value, mask).block_until_ready(),
  )


def decoding_beam() -> Iterator[Point]:
  for beam in (1, 2, 4, 8, 16):
    yield decoding_point("decoding, beam", beam, beam, OUTPUT)


def decoding_length() -> Iterator[Point]:
  for output in (24, 32, 64, 128, 256):
    yield decoding_point("decoding, length", output, BEAM, output)


def decoding_point(sweep: str, size: int, beam: int, output: int) -> Point:
  """`search` for outputs of `output` tokens."""
  options = SearchOptions(beam, LengthPenalty.GNMT, 0.6)
  source = np.random.default_rng(0).integers(EOS + 1, MODEL.vocab_size, (SENTENCES, SOURCE)).astype(np.int32)
  run = jax.jit(functools.partial(search, Transformer(MODEL), options, slots=SENTENCES, extra_length=output - SOURCE))
  params = endless_params()

  def checked() -> None:
    lengths = np.asarray(run(params, source).lengths)
    if (lengths != output).any():
      sys.exit(f"outputs of {output} tokens were asked for, but there are some of {lengths.min()}")

  return Point(sweep, size, SENTENCES * decoding_flops(beam, output), checked)


def decoding_flops(beam: int, output: int) -> float:
  """The operations for one sentence: its encoding, and `beam` hypotheses of `output` tokens."""
  d, layers = MODEL.d_model, MODEL.num_layers
  feed_forward = 4 * d * MODEL.d_ff
  encoder = SOURCE * (4 * SOURCE * d + 8 * d**2 + feed_forward)
  memory = 4 * SOURCE * d**2  # keys and values, which all hypotheses share
  token = 4 * (output / 2) * d + 8 * d**2 + 4 * SOURCE * d + 4 * d**2 + feed_forward
  return layers * (encoder + memory + beam * output * token) + beam * output * 2 * d * MODEL.vocab_size


def endless_params() -> Any:
  """Random parameters of a model that gives EOS no probability.

  The last LayerNorm's bias makes the sum of the decoder's output large, and the
  table's row of EOS is its negative, so that the logit of EOS is far below all others.
  """
  params = jax.tree.map(np.array, init_params(Config(model=MODEL), TASK))
  params["decoder"][f"layers_{MODEL.num_layers - 1}"]["feed_forward_sublayer"]["norm"]["bias"][:] = 1
  params["target_embedding"]["table"][EOS] = -1
  return params


SWEEPS = {
  "training-length": training_length,
  "training-vocabulary": training_vocabulary,
  "training-layers": training_layers,
  "training-batch": training_batch,
  "attention-length": attention_length,
  "attention-width": attention_width,
  "decoding-beam": decoding_beam,
  "decoding-length": decoding_length,
}


if __name__ == "__main__":
  use_huge_pages()  # as train.py does
  programs.run(main)
