"""Real target tokens a second in training, against JoeyNMT and torch.nn.Transformer, and how near the hardware's limit.

    python benchmarks/training_speed.py --data PREFIX [--size tiny base] [--peers DIR] [--json FILE]

PREFIX.en and PREFIX.de, plain or .xz, are the training text; we learn the vocabulary of 9,700 pieces and all sides
train on its pieces. "tiny" is configs/multi30k.py (4+4 layers of 128), "base" has the paper's layers of 512, 3+3 of
them (--layers). Each side is one fresh process a size, idle while another is measured; sides take turns in each round,
after a warm-up that is long enough for every shape to be compiled and every allocator to be warm.

What was chosen, and why:
- The same on every side: float32, all cores, dropout, label smoothing 0.1, Adam(0.9, 0.98), one table for both
  embeddings and the output layer, at most --batch-tokens positions a batch on each side, *padding included*, and a loss
  divided by the batch's target tokens. The rates count real tokens: each sentence's pieces and its EOS, no padding.
- Peers get sentences sorted by length, in batches as full as they go, as fairseq or a torch user's bucket sampler would
  make them. JoeyNMT has no such sampler, so that its own users train slower than what is said here; its batches are
  made into tensors here for the same reason: its data loader would only cost time.
- JoeyNMT has its own model, loss, batch and optimizer, in the order of its training loop.
- torch.nn.Transformer uses its fast paths: `is_causal`, scaled_dot_product_attention, the fused Adam, and no logits for
  padding. "torch compiled" (--compile) is the same behind `torch.compile` for any shape.
- Dropout is where the paper has it. The peers' further dropouts, on attention weights and inside feed-forward layers,
  are off: ours has none there, and they would cost torch its fast attention.
- Ours is what train.py runs, packed rows and all, for each of --row-lengths; the first of them is compared with peers.

"products" are the matrix products of one step, forward and backward at their own shapes, in XLA and in torch, one after
the other and nothing else: our step can't be faster than the faster of the two, unless it leaves some out or fuses
them. "of products" is their time divided by a step's: the share of the matrix-product rate that a step reaches. Those
of padding count as work, for they are computed.
"""

import argparse
import dataclasses
import functools
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import peers
import report

from transformer_jax import config as configs
from transformer_jax.config import Config, Corpus, DataConfig, ModelConfig, TrainConfig
from transformer_jax.data import packing, pipeline
from transformer_jax.data.packing import PackingReport
from transformer_jax.data.tokenizer import Tokenizer

SIZES = {
  "tiny": ModelConfig(vocab_size=9700, num_layers=4, d_model=128, d_ff=256, num_heads=4, dropout=0.3),
  "base": ModelConfig(vocab_size=9700, num_layers=3, d_model=512, d_ff=2048, num_heads=8, dropout=0.1),
}


class Side:
  """One trainer in its process.

  Args:
    name: in the table.
    command: interpreter, program in `trainers/` and, behind the folder, options.
    folder: for exchange.
    request: what each request says besides `steps`.
  """

  def __init__(self, name: str, command: tuple[str, ...], folder: Path, **request: Any):
    python, program, *options = command
    self.name = name
    self._request = request
    self._log = folder / f"{name}.log"
    with self._log.open("w") as log:
      self._process = subprocess.Popen(
        [python, str(Path(__file__).parent / "trainers" / program), str(folder), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
      )
    self._answer()

  def train(self, steps: int, **request: Any) -> dict[str, float]:
    """Seconds and real tokens of so many updates."""
    assert self._process.stdin
    print(json.dumps({"steps": steps, **self._request, **request}), file=self._process.stdin, flush=True)
    return self._answer()

  def close(self) -> None:
    assert self._process.stdin
    self._process.stdin.close()
    self._process.wait()  # not for the end of its output, which the compiler's own processes may hold open

  def _answer(self) -> dict[str, float]:
    assert self._process.stdout
    line = self._process.stdout.readline()
    if not line:
      sys.exit(f"{self.name} ended; the end of what it printed:\n{self._log.read_text()[-2000:]}")
    return json.loads(line)


def main() -> None:
  args = parse()
  torch_python = str(peers.python("JoeyNMT", peers.JOEYNMT, args.peers))  # has torch as well
  rows, padding = [], []
  for size in args.size:
    with tempfile.TemporaryDirectory() as scratch:
      config, tokenizer = prepare(size, args, Path(scratch))
      padding = padding or [padding_of(config, tokenizer, row_length) for row_length in args.row_lengths]
      rows += [{"size": size, **row} for row in measure(args, Path(scratch), torch_python)]
  print(report.table(padding) + "\n")
  report.finish(
    "training_speed", rows, args.json, padding=padding, peers=peers.versions(Path(torch_python), "torch", "joeynmt")
  )


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Speed of training.", allow_abbrev=False)
  add = parser.add_argument
  add("--data", required=True, metavar="PREFIX", help="training text: PREFIX.en and PREFIX.de, plain or .xz")
  add("--languages", nargs=2, default=["en", "de"], metavar="L", help="source and target (default en de)")
  add("--size", nargs="+", default=list(SIZES), choices=list(SIZES), help="(default: all)")
  add("--layers", type=int, metavar="N", help="of the encoder and of the decoder, in place of the size's own")
  add("--vocab-size", type=int, default=9700, metavar="N", help="(default 9700)")
  add("--batch-tokens", type=int, default=4096, metavar="N", help="positions of a batch on each side (default 4096)")
  add("--row-lengths", type=int, nargs="+", default=[64, 96, 128, 256], metavar="N", help="(default 64 96 128 256)")
  add("--rounds", type=int, default=7, metavar="N", help="(default 7)")
  add("--steps", type=int, default=5, metavar="N", help="updates a round and side (default 5)")
  add("--warm-up", type=int, default=5, metavar="N", help="updates before the first round (default 5)")
  add("--compile", action="store_true", help="measure torch behind torch.compile as well; needs a C++ compiler")
  report.add_arguments(parser)
  return parser.parse_args()


def prepare(size: str, args: argparse.Namespace, folder: Path) -> tuple[Config, Tokenizer]:
  """Writes the job that all sides read."""
  model = dataclasses.replace(SIZES[size], vocab_size=args.vocab_size, num_layers=args.layers or SIZES[size].num_layers)
  source, target = args.languages
  shortest = min(args.row_lengths)
  data = DataConfig(
    corpus=Corpus.TEXT,
    source_language=source,
    target_language=target,
    train=args.data,
    row_length=shortest,
    max_length=shortest,  # the same sentences for all row lengths and all sides
    cache_dir=str(folder),
  )
  config = Config(data=data, model=model, train=TrainConfig(batch_tokens=args.batch_tokens))
  tokenizer = pipeline.learn_tokenizer(data, model.vocab_size)
  tokenizer.save(folder / "tokenizer.model")
  job = {
    "config": configs.to_dict(config),
    "tokenizer": str(folder / "tokenizer.model"),
    "batches": sorted_batches(config, tokenizer),
    "longest": shortest,
    "learning_rate": 1e-4,
    "threads": len(os.sched_getaffinity(0)),
    "products": list(products(config, args.row_lengths[0])),
  }
  (folder / "job.json").write_text(json.dumps(job))
  return config, tokenizer


def sorted_batches(config: Config, tokenizer: Tokenizer) -> list[list[packing.Pair]]:
  """The corpus in batches of about one length, as full as they go, in random order."""
  sentences = pipeline.read_pairs(config.data, config.data.train)
  pairs = list(packing.encode_pairs(sentences, tokenizer, config.data.longest, PackingReport()))
  random.Random(0).shuffle(pairs)
  pairs.sort(key=lambda pair: (max(map(len, pair)), len(pair[1])))
  batches: list[list[packing.Pair]] = [[]]
  for pair in pairs:
    # Sorted, so that this pair is the longest so far.
    if (len(batches[-1]) + 1) * max(map(len, pair)) > config.train.batch_tokens:
      batches.append([])
    batches[-1].append(pair)
  batches = batches[:-1] or batches  # the last one is not full
  random.Random(0).shuffle(batches)
  return batches


def products(config: Config, row_length: int) -> Iterator[tuple[int, int, int, int, int]]:
  """[times, batch, m, k, n] of all matrix products of a step: each forward one has two of the same size backward."""
  model = config.model
  rows = config.train.batch_tokens // row_length
  tokens, d, layers = rows * row_length, model.d_model, model.num_layers
  heads = rows * model.num_heads
  forward = [
    (12 * layers, 1, tokens, d, d),  # four projections of three attentions
    (2 * layers, 1, tokens, d, model.d_ff),
    (2 * layers, 1, tokens, model.d_ff, d),
    (3 * layers, heads, row_length, model.head_dim_k, row_length),
    (3 * layers, heads, row_length, row_length, model.head_dim_v),
    (1, 1, tokens, d, model.vocab_size),
  ]
  for times, batch, m, k, n in forward:
    yield times, batch, m, k, n
    yield times, batch, m, n, k  # for the gradient of the left operand
    yield times, batch, k, m, n  # and of the right one


def padding_of(config: Config, tokenizer: Tokenizer, row_length: int) -> dict[str, Any]:
  """How much of the packed rows holds no token."""
  data = dataclasses.replace(config.data, row_length=row_length)
  found = pipeline.packed_rows(data, data.train, tokenizer).report
  share = 100 * found.padding(row_length)
  return {
    "row length": row_length,
    "rows": found.rows,
    "padding, %": share,
    "pairs left out": found.too_long + found.empty,
  }


def measure(args: argparse.Namespace, folder: Path, torch_python: str) -> list[dict[str, Any]]:
  """Rows of the table for one size."""
  python = sys.executable
  ours = {
    length: Side(f"ours, rows of {length}", (python, "ours.py"), folder, row_length=length)
    for length in args.row_lengths
  }
  theirs = [
    Side("JoeyNMT", (torch_python, "joey.py"), folder),
    Side("torch.nn.Transformer", (torch_python, "plain_torch.py"), folder),
  ]
  if args.compile:
    theirs.append(Side("torch compiled", (torch_python, "plain_torch.py", "compile"), folder))
  limits = [
    Side("products, XLA", (python, "products.py"), folder),
    Side("products, torch", (torch_python, "products.py", "torch"), folder),
  ]
  trainers = [*ours.values(), *theirs]
  for side in trainers:
    report.progress(f"warming up {side.name}")
    side.train(args.warm_up)
  found: dict[str, list[dict[str, float]]] = {side.name: [] for side in [*trainers, *limits]}
  seconds_a_token = report.interleave(
    {side.name: functools.partial(a_token, side, args.steps, found) for side in trainers}
    | {side.name: functools.partial(a_step, side, found) for side in limits},
    args.rounds,
  )
  for side in [*trainers, *limits]:
    side.close()
  return table(found, seconds_a_token, args.steps, limits, trainers[0].name)


def a_token(side: Side, steps: int, found: dict[str, list[dict[str, float]]]) -> float:
  """Seconds for each real target token; the answer is kept in `found`."""
  answer = side.train(steps)
  found[side.name].append(answer)
  return answer["seconds"] / answer["target_tokens"]


def a_step(side: Side, found: dict[str, list[dict[str, float]]]) -> float:
  """Seconds of one step's matrix products."""
  answer = side.train(1)
  found[side.name].append(answer)
  return answer["seconds"]


def table(
  found: dict[str, list[dict[str, float]]],
  seconds: dict[str, list[float]],
  steps: int,
  limits: list[Side],
  reference: str,
) -> list[dict[str, Any]]:
  limit_names = [side.name for side in limits]
  fastest = min(limit_names, key=lambda name: report.median(seconds[name]))
  rows = []
  for name, answers in found.items():
    if name in limit_names:
      rows.append({"side": name, "s a step": report.median(seconds[name]), "spread": report.spread(seconds[name])})
      continue
    steps_seconds = [answer["seconds"] / steps for answer in answers]
    row = {
      "side": name,
      "s a step": report.median(steps_seconds),
      "spread": report.spread(seconds[name]),
      "target tokens/s": 1 / report.median(seconds[name]),
      "target tokens a step": report.median([answer["target_tokens"] / steps for answer in answers]),
      "first side is": report.ratio(seconds[name], seconds[reference]),
    }
    if name == reference:
      row["of products"] = report.ratio(seconds[fastest], steps_seconds)
    rows.append(row)
  return rows


if __name__ == "__main__":
  main()
