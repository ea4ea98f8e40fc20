"""Model FLOPs utilisation: the share of a device's matmul rate that a training step uses.

    python benchmarks/utilisation.py --data PREFIX [--size base big] [--dtype bfloat16] [--json FILE]

PREFIX.en and PREFIX.de, plain or .xz, are real text; the result depends on the lengths of its sentences. "base" and
"big" are the paper's models (Table 3) with --vocab-size pieces; the text's own vocabulary has --pieces, as a small text
has too few different ones for more. The batch is the paper's, about 25,000 tokens per side, in rows of --row-length.

The operations are those that the model needs for the tokens without padding. A multiplication and an addition are two
operations, and the backward pass makes them three times as many: 6 N D, where the parameters of each matmul count with
the tokens that they are multiplied with,

    encoder layer      N_s (h d (2 d_k + 2 d_v) + 2 d d_ff)      N_s source tokens, N_t target tokens
    decoder layer      N_t (h d (3 d_k + 3 d_v) + 2 d d_ff) + N_s h d (d_k + d_v)
    output layer       N_t d V

and the scores and weighted values of attention, h (d_k + d_v) per pair of positions: s^2 pairs in a source of s tokens,
t (t + 1) / 2 in its target of t tokens, and s t between them. Padding, masked pairs of positions, repeated computation,
embeddings and all operations except matmuls do not count. The reference is the rate of square matmuls of --dtype, the
best of a few sizes, measured in the same rounds.
"""

import argparse
import dataclasses
import functools
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import programs
import report
import text

from transformer_jax.config import Config, TrainConfig
from transformer_jax.data import packing, pipeline
from transformer_jax.data.batches import Batches
from transformer_jax.model.config import Dtype, ModelConfig
from transformer_jax.runtime import devices
from transformer_jax.runtime.compilation_cache import use_compilation_cache
from transformer_jax.runtime.process import prefer_cublas, use_huge_pages
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.step import init_state, train_step

SIZES = {
  "tiny": ModelConfig(num_layers=4, d_model=128, d_ff=256, num_heads=4),
  "base": ModelConfig(),
  "big": ModelConfig(d_model=1024, d_ff=4096, num_heads=16, dropout=0.3),
}


def main() -> None:
  args = parse()
  use_compilation_cache()
  report.finish("utilisation", [measure(size, args) for size in args.size], args.json, device=devices.describe())


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Model FLOPs utilisation.", allow_abbrev=False)
  add = parser.add_argument
  text.add_arguments(parser)
  add("--size", nargs="+", default=["base", "big"], choices=list(SIZES), help="(default base big)")
  add("--dtype", default="bfloat16", choices=[dtype.name.lower() for dtype in Dtype], help="(default bfloat16)")
  add("--fused-attention", action="store_true", help="with cuDNN's kernel; on NVIDIA's GPUs")
  add("--vocab-size", type=int, default=37_000, metavar="N", help="of the model (default 37000)")
  add("--pieces", type=int, default=8000, metavar="N", help="of the text's vocabulary (default 8000)")
  add("--batch-tokens", type=int, default=25_088, metavar="N", help="positions of a batch on each side (default 25088)")
  add("--row-length", type=int, default=128, metavar="N", help="(default 128)")
  add("--accumulation", type=int, default=1, metavar="N", help="parts that a batch is computed in (default 1)")
  add("--rounds", type=int, default=3, metavar="N", help="(default 3)")
  add("--steps", type=int, default=10, metavar="N", help="updates a round (default 10)")
  report.add_arguments(parser, with_peers=False)
  return parser.parse_args()


def measure(size: str, args: argparse.Namespace) -> dict[str, Any]:
  """A row of the table."""
  model = dataclasses.replace(
    SIZES[size], vocab_size=args.vocab_size, dtype=Dtype[args.dtype.upper()], fused_attention=args.fused_attention
  )
  with tempfile.TemporaryDirectory() as folder:
    turns = updates(model, args, folder)
    next(turns)  # compiles, and is not timed
    found: list[dict[str, float]] = []

    def train() -> float:
      found.append(next(turns))
      return found[-1]["flops"] / found[-1]["seconds"]

    rates = report.interleave({"step": train, "matmuls": functools.partial(matmul_rate, model.dtype)}, args.rounds)
  return {
    "size": size,
    "dtype": args.dtype,
    "attention": "fused" if args.fused_attention else "plain",
    "s per step": report.median([turn["seconds"] / args.steps for turn in found]),
    "target tokens/s": report.median([turn["target_tokens"] / turn["seconds"] for turn in found]),
    "step, TFLOP/s": report.median(rates["step"]) / 1e12,
    "spread": report.spread(rates["step"]),
    "matmuls, TFLOP/s": report.median(rates["matmuls"]) / 1e12,
    "utilisation, %": 100 * report.ratio(rates["step"], rates["matmuls"]),
  }


def updates(model: ModelConfig, args: argparse.Namespace, folder: str) -> Iterator[dict[str, float]]:
  """Turns of `args.steps` updates: the seconds, the operations that the model needs, and the target tokens of each."""
  data = text.config(args, args.row_length, folder, max_length=args.row_length)
  config = Config(
    data=data, model=model, train=TrainConfig(batch_tokens=args.batch_tokens, accumulation=args.accumulation)
  )
  packed = pipeline.packed_rows(data, data.train, pipeline.learn_tokenizer(data, args.pieces))
  report.progress(packed.report.describe(data.row_length))  # also tells what is left out as too long
  multiple = devices.device_count() * args.accumulation
  batches = Batches(packed, args.batch_tokens // args.row_length, config.train.seed, multiple=multiple)
  state = jax.jit(lambda: init_state(config, TASK), out_shardings=devices.on_all_devices())()
  step = devices.over_devices(functools.partial(train_step, config, TASK), out_axes=(None, None), donate_state=True)
  number = 0
  while True:
    turn = [batches[number + i] for i in range(args.steps)]
    number += args.steps
    start = time.perf_counter()
    metrics = None
    for batch in turn:
      before, (state, metrics) = metrics, step(state, devices.shard(batch))
      jax.block_until_ready(before)  # one step is computed while another waits, as in train.py
    jax.block_until_ready(metrics)
    seconds = time.perf_counter() - start
    pairs = np.concatenate([lengths(batch.rows) for batch in turn])
    yield {
      "seconds": seconds,
      "flops": 3 * forward_flops(model, pairs[:, 0], pairs[:, 1]),
      "target_tokens": float(pairs[:, 1].sum()),
    }


def lengths(rows: np.ndarray) -> np.ndarray:
  """The tokens of the source and the target of each pair in packed rows, with EOS: `[pairs, 2]`."""
  sides = rows[:, [packing.SOURCE_SEGMENTS, packing.TARGET_SEGMENTS]].astype(np.int64)  # [rows, 2, length]
  segments = np.arange(1, sides.max() + 1)
  counts = np.sum(sides[:, None] == segments[:, None, None], axis=-1)  # [rows, segments, 2]
  return counts[counts.all(axis=-1)]


def forward_flops(model: ModelConfig, source: np.ndarray, target: np.ndarray) -> float:
  """The multiplications and additions that the model's matmuls need for pairs with these numbers of tokens."""
  d, heads, head = model.d_model, model.num_heads, model.head_dim_k + model.head_dim_v
  feed_forward = 2 * d * model.d_ff
  source_tokens, target_tokens = int(source.sum()), int(target.sum())
  encoder = source_tokens * (2 * heads * d * head + feed_forward)
  decoder = target_tokens * (3 * heads * d * head + feed_forward) + source_tokens * heads * d * head
  pairs = int((source**2 + target * (target + 1) // 2 + source * target).sum())
  layers = model.num_layers * (encoder + decoder + heads * head * pairs)
  return 2.0 * (layers + target_tokens * d * model.vocab_size)


def matmul_rate(dtype: Dtype) -> float:
  """The operations per second of square matmuls, at their best size."""
  sizes = (1024, 2048, 4096) if devices.on_cpu() else (4096, 8192, 16384)
  return devices.device_count() * max(_rate(size, jnp.dtype(dtype.value)) for size in sizes)


def _rate(size: int, dtype: Any) -> float:
  a = jax.random.normal(jax.random.key(0), (size, size), dtype)
  multiply = jax.jit(jnp.matmul)
  jax.block_until_ready(multiply(a, a))
  times = max(3, round(2e12 / size**3)) if not devices.on_cpu() else 3
  start = time.perf_counter()
  jax.block_until_ready([multiply(a, a) for _ in range(times)])
  return times * 2 * size**3 / (time.perf_counter() - start)


if __name__ == "__main__":
  use_huge_pages()  # as train.py does
  prefer_cublas()
  programs.run(main)
