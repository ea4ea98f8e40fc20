"""The time of each part of the model in a training step or a search, from JAX's profiler.

    python benchmarks/where_time_goes.py train [--size tiny] [--dtype float32] [--row-length 64] [--json FILE]
    python benchmarks/where_time_goes.py decode --workdir RUN --data FILE.en [--beam 4] [--json FILE]

The compiled program has the module and line of each of its operations; the profiler has the time of each. Times are
summed over the threads that ran the operations, and a share is a share of this sum: several operations run at a time,
and one that is split over all cores counts once. So the shares tell what is large, not what a change would save.
"""

import argparse
import collections
import dataclasses
import functools
import gzip
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import programs
import report
import text

from transformer_jax.runtime.process import use_huge_pages

# The first pattern that matches the name of an operation tells the part that it belongs to.
PARTS = (
  ("dropout", r"dropout|random_bits|threefry"),
  ("layer normalisation", r"/norm/"),
  ("attention over the source", r"cross_attention|memory_keys_values"),
  ("self-attention", r"self_attention|/attention"),
  ("feed-forward", r"feed_forward"),
  ("embeddings and positions", r"embedding|positions"),
  ("output layer and loss, or probabilities", r"d,vd->|closed_call|eval_jaxpr|logits|log_softmax"),
  ("choice of hypotheses", r"top_k|take_along_axis|scatter|gather"),
)


def main() -> None:
  args = parse()
  compiled, run = training(args) if args.what == "train" else decoding(args)
  parts = parts_of(compiled.as_text())
  passes = 3
  seconds: collections.Counter[str] = collections.Counter()
  for name, duration in traced(run, passes):
    if name in parts:
      seconds[parts[name]] += duration / passes
  total = sum(seconds.values())
  rows = [{"part": part, "ms": 1e3 * s, "share, %": 100 * s / total} for part, s in seconds.most_common()]
  report.finish("where_time_goes", rows, args.json)


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Where the time goes.", allow_abbrev=False)
  add = parser.add_argument
  add("what", choices=["train", "decode"])
  add("--size", default="tiny", help="of the model to train: tiny (default) or base")
  add("--dtype", default="float32", choices=["float32", "bfloat16"], help="of training (default float32)")
  add("--row-length", type=int, default=64, metavar="N", help="of training (default 64)")
  add("--batch-tokens", type=int, default=4096, metavar="N", help="of training (default 4096)")
  add("--workdir", metavar="DIR", help="a run folder of train.py to decode with")
  add("--data", metavar="FILE", help="sentences to decode, one per line")
  add("--beam", type=int, default=4, metavar="N", help="(default 4)")
  report.add_arguments(parser, with_peers=False)
  args = parser.parse_args()
  if args.what == "decode" and not (args.workdir and args.data):
    parser.error("decode needs --workdir and --data")
  return args


def training(args: argparse.Namespace) -> tuple[Any, Any]:
  """The compiled step, and a function that runs it once."""
  import jax
  import numpy as np
  from training_speed import SIZES

  from transformer_jax.config import Config, Corpus, DataConfig, TrainConfig
  from transformer_jax.data.batches import Batch
  from transformer_jax.model.config import Dtype
  from transformer_jax.runtime import devices
  from transformer_jax.tasks.translation import TASK
  from transformer_jax.training.step import init_state, train_step

  length, rows = args.row_length, args.batch_tokens // args.row_length
  data = DataConfig(corpus=Corpus.TEXT, train="none", row_length=length)
  model = dataclasses.replace(SIZES[args.size], dtype=Dtype(args.dtype))
  config = Config(data=data, model=model, train=TrainConfig(batch_tokens=args.batch_tokens))
  state = jax.jit(lambda: init_state(config, TASK), out_shardings=devices.on_all_devices())()
  step = devices.over_devices(functools.partial(train_step, config, TASK), out_axes=(None, None), donate_state=True)
  tokens = np.random.default_rng(0).integers(4, config.model.vocab_size, (2, rows, length))
  segments = np.broadcast_to(np.arange(length) // 13 + 1, (rows, length))  # sentences of 13 tokens
  packed = np.stack([tokens[0], segments, tokens[1], segments], axis=1).astype(np.uint16)
  batch = devices.shard(Batch(packed, np.arange(rows, dtype=np.int32)))
  compiled = step.lower(state, batch).compile()

  def run() -> None:
    nonlocal state
    state, _ = step(state, batch)
    jax.block_until_ready(state)

  return compiled, run


def decoding(args: argparse.Namespace) -> tuple[Any, Any]:
  """The compiled search for sentences of the first bucket, and a function that runs it once."""
  import jax

  from transformer_jax import runs
  from transformer_jax.decoding import batch, buckets
  from transformer_jax.model.special_tokens import EOS, PAD
  from transformer_jax.model.transformer import Transformer
  from transformer_jax.runtime import devices

  config, params, tokenizer, _ = runs.open(args.workdir).model("translate")
  length, decode = buckets.buckets(config.decode.max_source_length)[0], config.decode
  sources = [[*tokens, EOS] for tokens in tokenizer.source.encode_batch(text.lines(args.data))]
  slots = buckets.rows_at_once(length, decode.extra_length)
  rows = buckets.pad([source for source in sources if len(source) <= length][: 8 * slots], 8 * slots, length, PAD)
  headroom = buckets.headroom(length, config.decode.max_source_length, decode.extra_length)
  options = dataclasses.replace(batch.SearchOptions.of(config), beam_size=args.beam, patience=1.0)
  function = functools.partial(
    batch.search,
    Transformer(config.model),
    options,
    slots=slots,
    extra_length=decode.extra_length,
    headroom=headroom,
  )
  search = devices.over_devices(function, out_axes=0, alone=True)
  placed, source = devices.replicate(params), devices.shard(rows)
  return search.lower(placed, source).compile(), lambda: jax.block_until_ready(search(placed, source))


def parts_of(program: str) -> dict[str, str]:
  """Operation of the compiled program -> the part that it belongs to."""
  with_matmuls, found = set(), {}
  for computation in re.split(r"\n(?=%|ENTRY )", program):
    if " dot(" in computation:
      with_matmuls.add(computation.split(" ")[0].lstrip("%"))
  for line in program.split("\n"):
    if match := re.match(r"\s*(?:ROOT )?%?([\w.\-]+) = ", line):
      name, called = re.search(r'op_name="([^"]*)"', line), re.search(r"calls=%?([\w.\-]+)", line)
      is_matmul = " dot(" in line or "__cublas" in line or (called is not None and called[1] in with_matmuls)
      found[match[1]] = part_of(match[1], name[1] if name else "", is_matmul)
  return found


def part_of(operation: str, name: str, is_matmul: bool) -> str:
  if operation.startswith(("while", "cond", "call")):
    return "loops, which hold other operations"
  name = name.replace("after_self_attention", "")  # the method that computes all parts after self-attention
  part = next((part for part, pattern in PARTS if re.search(pattern, name)), "optimizer, copies and others")
  return f"{part}: {'matmuls' if is_matmul else 'others'}"


def traced(run: Any, passes: int) -> list[tuple[str, float]]:
  """The operations and their seconds in `passes` runs, after two runs that do not count."""
  import jax

  run(), run()
  with tempfile.TemporaryDirectory() as folder:
    with jax.profiler.trace(folder):
      for _ in range(passes):
        run()
    (file,) = Path(folder).rglob("*.trace.json.gz")
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
  return [
    (event["args"]["hlo_op"], event["dur"] / 1e6)
    for event in events
    if event.get("ph") == "X" and "hlo_op" in event.get("args", {})
  ]


if __name__ == "__main__":
  use_huge_pages()
  programs.run(main)
