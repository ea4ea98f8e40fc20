"""Target tokens per second in training, against JoeyNMT and torch.nn.Transformer, and against the hardware's limit.

    python benchmarks/training_speed.py --data PREFIX [--size tiny base] [--peers DIR] [--json FILE]
    python benchmarks/training_speed.py --data PREFIX --sides --checkout OTHER --row-lengths 64 --rounds 20

PREFIX.en and PREFIX.de, plain or .xz, are the training text; we learn the vocabulary of 9,700 pieces and all sides
train on its tokens. "tiny" is configs/multi30k.py (4+4 layers of 128), "base" has the paper's layers of 512, 3+3 of
them (--layers). Each side is one fresh process per size, idle while another is measured; sides take turns in each
round, after a warm-up in which every shape is compiled. The first update of each turn is not timed: an idle virtual
machine gives its memory back to its host, and the step that gets it again can take twice as long.

The choices:
- The same on every side: float32, all cores, dropout, label smoothing 0.1, Adam(0.9, 0.98) with the same learning rate
  at each update (eq. 3 with a short warmup), one table for both embeddings and the output layer, at most --batch-tokens
  positions per batch on each side, *padding included*, and a loss divided by the batch's target tokens. The rates count
  each sentence's tokens with its EOS, without padding.
- Peers get sentences sorted by length, in batches that are as full as possible, as fairseq or a torch user's bucket
  sampler would make them. JoeyNMT has no such sampler, so its users train more slowly than measured here. Its batches
  are made into tensors here, because its data loader would only cost time.
- JoeyNMT has its own model, loss, batch and optimizer, in the order of its training loop.
- torch.nn.Transformer uses its fast paths: `is_causal`, scaled_dot_product_attention, the fused Adam, and no logits for
  padding. "torch compiled" (--compile) is the same compiled by `torch.compile` for any shape.
- Dropout is where the paper has it. The peers' further dropouts, on attention weights and inside feed-forward layers,
  are off: ours has none there, and with them torch could not use its fast attention.
- With `--dtypes float32 bfloat16` ours and torch run in both types: ours with `model.dtype=bfloat16`, torch under
  `torch.autocast`. JoeyNMT has no such type on a CPU.
- Ours is the step of train.py on packed rows, for each of --row-lengths; the first length is compared with the peers.
  All sides use huge pages, as train.py does.

The second command compares two commits: OTHER is a checkout of this project at another commit, and `--sides` without
names leaves the peers out. "speedup of ours" compares the first side with each other side by seconds per target token,
as the median over the rounds; "95%" are its bounds by a bootstrap over the rounds.

"loss" is the smoothed cross entropy of the last round's updates, in nats per target token. All sides learn the same
task from their own random parameters, and should have a similar loss after equally many updates.

"matmuls" are all matmuls of one step, forward and backward at their own shapes, in XLA and in torch, one after the
other and without anything else: our step can hardly be faster than the faster of the two. "matmuls / step" is their
time divided by a step's: the share of the matmul rate that a step reaches. The matmuls of padding count as work,
because they are computed.
"""

import argparse
import dataclasses
import functools
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import peers
import programs
import report
import text
from side import Side, checkouts

from transformer_jax.config import Config, TrainConfig, serialization
from transformer_jax.data import packing, pipeline
from transformer_jax.data.pair_counts import PairCounts
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.model.config import ModelConfig

SIZES = {
  "tiny": ModelConfig(vocab_size=9700, num_layers=4, d_model=128, d_ff=256, num_heads=4, dropout=0.3),
  "base": ModelConfig(vocab_size=9700, num_layers=3, d_model=512, d_ff=2048, num_heads=8, dropout=0.1),
}


PEERS = {"JoeyNMT": "trainers/joey.py", "torch.nn.Transformer": "trainers/plain_torch.py"}


def main() -> None:
  args = parse()
  torch_python = str(peers.python("JoeyNMT", peers.JOEYNMT, args.peers)) if args.sides else None  # has torch as well
  rows, padding = [], []
  for size in args.size:
    with tempfile.TemporaryDirectory() as scratch:
      config, tokenizer = prepare(size, args, Path(scratch))
      padding = padding or [padding_of(config, tokenizer, row_length) for row_length in args.row_lengths]
      rows += [{"size": size, **row} for row in measure(args, Path(scratch), torch_python)]
  print(report.table(padding) + "\n")
  versions = peers.versions(Path(torch_python), "torch", "joeynmt") if torch_python else {}
  report.finish("training_speed", rows, args.json, padding=padding, peers=versions)


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Speed of training.", allow_abbrev=False)
  add = parser.add_argument
  text.add_arguments(parser)
  add("--size", nargs="+", default=list(SIZES), choices=list(SIZES), help="(default: all)")
  add("--layers", type=int, metavar="N", help="of the encoder and of the decoder, in place of the size's own")
  add("--vocab-size", type=int, default=9700, metavar="N", help="(default 9700)")
  add("--batch-tokens", type=int, default=4096, metavar="N", help="positions of a batch on each side (default 4096)")
  add("--row-lengths", type=int, nargs="+", default=[64, 96, 128, 256], metavar="N", help="(default 64 96 128 256)")
  add("--rounds", type=int, default=7, metavar="N", help="(default 7)")
  add("--steps", type=int, default=5, metavar="N", help="updates a round and side (default 5)")
  add("--warm-up", type=int, default=5, metavar="N", help="updates before the first round (default 5)")
  add("--sides", nargs="*", default=list(PEERS), choices=PEERS, metavar="NAME", help="peers to measure (default: all)")
  add("--checkout", nargs="+", default=[], metavar="DIR", help="of this project, measured beside this one")
  add(
    "--dtypes",
    nargs="+",
    default=["float32"],
    choices=["float32", "bfloat16"],
    metavar="TYPE",
    help="of ours and torch (default float32)",
  )
  add("--compile", action="store_true", help="measure torch behind torch.compile as well; needs a C++ compiler")
  report.add_arguments(parser)
  args = parser.parse_args()
  if args.compile and not args.sides:
    parser.error("--compile needs the environment of a peer: name one with --sides")
  return args


def prepare(size: str, args: argparse.Namespace, folder: Path) -> tuple[Config, Tokenizer]:
  """Writes the job for all sides."""
  model = dataclasses.replace(SIZES[size], vocab_size=args.vocab_size, num_layers=args.layers or SIZES[size].num_layers)
  shortest = min(args.row_lengths)
  # All row lengths and all sides have the same sentences.
  data = text.config(args, shortest, str(folder), max_length=shortest)
  # With the paper's warmup the rate would be almost 0 in so few updates.
  train = TrainConfig(batch_tokens=args.batch_tokens, warmup_steps=20, peak_learning_rate=5e-4)
  config = Config(data=data, model=model, train=train)
  tokenizer = pipeline.learn_tokenizer(data, model.vocab_size)
  (folder / "tokenizer.model").write_bytes(tokenizer.to_bytes())
  job = {
    "config": serialization.to_dict(config),
    "batches": sorted_batches(config, tokenizer),
    "longest": shortest,
    "threads": len(os.sched_getaffinity(0)),
    "matmuls": list(matmuls(config, args.row_lengths[0])),
  }
  (folder / "job.json").write_text(json.dumps(job))
  return config, tokenizer


def sorted_batches(config: Config, tokenizer: Tokenizer) -> list[list[list[list[int]]]]:
  """The corpus in batches of pairs of sentences of similar length, as full as possible, in random order."""
  sentences = pipeline.read_pairs(config.data, config.data.train)
  encoded = packing.encode_pairs(sentences, tokenizer, config.data.longest, PairCounts())
  pairs = [[side.tolist() for side in pair] for pair in encoded]
  random.Random(0).shuffle(pairs)
  pairs.sort(key=lambda pair: (max(map(len, pair)), len(pair[1])))
  batches: list[list[list[list[int]]]] = [[]]
  for pair in pairs:
    # The pairs are sorted, so this one is the longest so far.
    if (len(batches[-1]) + 1) * max(map(len, pair)) > config.train.batch_tokens:
      batches.append([])
    batches[-1].append(pair)
  batches = batches[:-1] or batches  # the last one is not full
  random.Random(0).shuffle(batches)
  return batches


def matmuls(config: Config, row_length: int) -> Iterator[tuple[int, int, int, int, int]]:
  """[times, batch, m, k, n] of all matmuls of a step: each forward one has two of the same size backward."""
  model = config.model
  rows = config.train.batch_tokens // row_length
  tokens, d, layers = rows * row_length, model.d_model, model.num_layers
  heads = rows * model.num_heads
  forward = [
    (12 * layers, 1, tokens, d, d),  # the four projections of three attentions
    (2 * layers, 1, tokens, d, model.d_ff),
    (2 * layers, 1, tokens, model.d_ff, d),
    (3 * layers, heads, row_length, model.head_dim_k, row_length),
    (3 * layers, heads, row_length, row_length, model.head_dim_v),
    (1, 1, tokens, d, model.vocab_size),
  ]
  for times, batch, m, k, n in forward:
    yield times, batch, m, k, n
    yield times, batch, m, n, k  # the gradient of the left operand
    yield times, batch, k, m, n  # the gradient of the right operand


def padding_of(config: Config, tokenizer: Tokenizer, row_length: int) -> dict[str, Any]:
  """A row with the share of padding in the packed rows."""
  data = dataclasses.replace(config.data, row_length=row_length)
  found = pipeline.packed_rows(data, data.train, tokenizer).report
  share = 100 * found.padding(row_length)
  return {
    "row length": row_length,
    "rows": found.rows,
    "padding, %": share,
    "pairs left out": sum(found.left_out.values()),
  }


def measure(args: argparse.Namespace, folder: Path, torch_python: str | None) -> list[dict[str, Any]]:
  """The rows of the table for one size."""
  trainers, limits = sides(args, folder, torch_python)
  for side in trainers:
    report.progress(f"warming up {side.name}")
    side.ask(steps=args.warm_up)
  answers: dict[str, list[dict[str, float]]] = {side.name: [] for side in trainers}
  seconds = report.interleave(
    {side.name: functools.partial(a_step, side, args.steps, answers[side.name]) for side in trainers}
    | {side.name: lambda side=side: side.ask()["seconds"] for side in limits},
    args.rounds,
  )
  for side in [*trainers, *limits]:
    side.close()
  return table(answers, seconds, [side.name for side in limits])


def sides(args: argparse.Namespace, folder: Path, torch_python: str | None) -> tuple[list[Side], list[Side]]:
  """The trainers, ours first, and the programs that compute only the matmuls."""
  ours, matmuls, plain_torch = "trainers/ours.py", "trainers/matmuls.py", PEERS["torch.nn.Transformer"]
  trainers, limits = [], []
  for dtype in args.dtypes:
    ending = "" if dtype == "float32" else f", {dtype}"
    for n in args.row_lengths if not ending else args.row_lengths[:1]:
      trainers.append(Side(f"ours, rows of {n}{ending}", sys.executable, ours, folder, [str(n), dtype]))
    for name, checkout in checkouts(args.checkout).items():
      options = [str(args.row_lengths[0]), dtype]
      own = own_folder(folder, name + ending)
      trainers.append(Side(name + ending, sys.executable, ours, own, options, checkout=checkout))
    limits.append(Side(f"matmuls, XLA{ending}", sys.executable, matmuls, folder, [dtype]))
    if torch_python:
      limits.append(Side(f"matmuls, torch{ending}", torch_python, matmuls, folder, ["torch", dtype]))
      for name in args.sides:
        if not ending or name == "torch.nn.Transformer":
          trainers.append(Side(name + ending, torch_python, PEERS[name], folder, [dtype]))
      if args.compile:
        trainers.append(Side(f"torch compiled{ending}", torch_python, plain_torch, folder, ["compile", dtype]))
  return trainers, limits


def own_folder(folder: Path, name: str) -> Path:
  """A folder with the job for another commit, which perhaps cannot read the rows that this commit packed."""
  job = json.loads((folder / "job.json").read_text())
  own = folder / name
  own.mkdir()
  job["config"]["data"]["cache_dir"] = str(own)
  (own / "job.json").write_text(json.dumps(job))
  shutil.copy(folder / "tokenizer.model", own)
  return own


def a_step(side: Side, steps: int, answers: list[dict[str, float]]) -> float:
  """The seconds of one update."""
  answers.append(side.ask(steps=steps))
  return answers[-1]["seconds"] / steps


def table(
  answers: dict[str, list[dict[str, float]]], seconds: dict[str, list[float]], limits: list[str]
) -> list[dict[str, Any]]:
  """The rows of the trainers, the first compared with the others, and then the rows of the matmuls.

  Args:
    answers: the answers of each trainer, round by round.
    seconds: the seconds of a step, for each trainer and the matmuls.
    limits: the names of the matmuls.
  """
  a_token = {name: [a["seconds"] / a["target_tokens"] for a in of_side] for name, of_side in answers.items()}
  reference = next(iter(answers))
  rows: list[dict[str, Any]] = [
    {
      "side": name,
      "s per step": report.median(seconds[name]),
      "spread": report.spread(a_token[name]),
      "target tokens/s": 1 / report.median(a_token[name]),
      "speedup of ours": report.ratio(a_token[name], a_token[reference]),
      "95%": report.bounds(a_token[name], a_token[reference]),
      "loss": of_side[-1]["loss"],
    }
    for name, of_side in answers.items()
  ]
  half = ", bfloat16"
  for row in rows:
    if row["side"].removesuffix(half) == reference.removesuffix(half):  # in each type
      of_type = [name for name in limits if name.endswith(half) == row["side"].endswith(half)]
      fastest = min(of_type, key=lambda name: report.median(seconds[name]))
      row["matmuls / step"] = report.ratio(seconds[fastest], seconds[row["side"]])
  rows += [{"side": n, "s per step": report.median(seconds[n]), "spread": report.spread(seconds[n])} for n in limits]
  return rows


if __name__ == "__main__":
  programs.run(main)
