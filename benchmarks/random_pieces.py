"""What random pieces cost a run: the seconds in which an epoch is packed, and those in which an update waits for it.

    python benchmarks/random_pieces.py --data PREFIX [--bpe-dropout 0.1] [--steps 300] [--json FILE]

PREFIX.en and PREFIX.de, plain or .xz, are the training text. Both sides are training runs of a small model: one without
random pieces, one with them. An epoch is packed in a thread while the updates of the one before go on. "waits" is the
time that a step spends to get its batch, summed over the run without the first epoch, which every run waits for; "step"
is the mean time of a step.
"""

import argparse
import functools
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import programs
import report
import text

from transformer_jax.config import Config, EvaluateConfig, TrainConfig
from transformer_jax.data import pipeline
from transformer_jax.model.config import ModelConfig
from transformer_jax.trainer import loop


def main() -> None:
  args = parse()
  answers: dict[str, list[dict[str, Any]]] = {"fixed pieces": [], "random pieces": []}
  sides = {
    name: functools.partial(run, args, args.bpe_dropout if name == "random pieces" else 0.0, found)
    for name, found in answers.items()
  }
  with tempfile.TemporaryDirectory() as folder:
    args.folder = folder
    report.interleave(sides, args.rounds)
  report.finish("random_pieces", [row(side, found) for side, found in answers.items()], args.json)


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="The cost of random pieces.", allow_abbrev=False)
  add = parser.add_argument
  text.add_arguments(parser)
  add("--bpe-dropout", type=float, default=0.1, metavar="P", help="(default 0.1)")
  add("--vocab-size", type=int, default=8000, metavar="N", help="(default 8000)")
  add("--d-model", type=int, default=128, metavar="N", help="(default 128)")
  add("--batch-tokens", type=int, default=4096, metavar="N", help="(default 4096)")
  add("--steps", type=int, default=300, metavar="N", help="(default 300)")
  add("--rounds", type=int, default=3, metavar="N", help="(default 3)")
  report.add_arguments(parser, with_peers=False)
  return parser.parse_args()


def config_of(args: argparse.Namespace, dropout: float) -> Config:
  heads = max(1, args.d_model // 32)
  return Config(
    data=text.config(args, 64, args.folder, validation="", bpe_dropout=dropout),
    model=ModelConfig(vocab_size=args.vocab_size, num_layers=4, d_model=args.d_model, d_ff=256, num_heads=heads),
    train=TrainConfig(steps=args.steps, batch_tokens=args.batch_tokens, log_every=args.steps, save_every=0),
    evaluate=EvaluateConfig(every=0),
  )


def run(args: argparse.Namespace, dropout: float, found: list[dict[str, Any]]) -> float:
  """One run; returns its seconds a step."""
  gets: list[float] = []
  packs: list[float] = []
  starts: list[float] = []
  classes = {"Batches": loop.Batches, "BatchesPackedAhead": loop.BatchesPackedAhead}
  packing = pipeline.packing_of_epochs

  def timed_packing(*arguments: Any) -> Any:
    pack = packing(*arguments)

    def packed(epoch: int) -> Iterator[np.ndarray]:
      start = time.perf_counter()
      yield from pack(epoch)
      packs.append(time.perf_counter() - start)

    return packed

  pipeline.packing_of_epochs = timed_packing
  for name, batches in classes.items():
    setattr(loop, name, timed(batches, starts, gets))
  try:
    loop.train(config_of(args, dropout), Path(tempfile.mkdtemp(dir=args.folder)))
  finally:
    pipeline.packing_of_epochs = packing
    for name, batches in classes.items():
      setattr(loop, name, batches)
  step = (starts[-1] - starts[1]) / (len(starts) - 2)
  found.append({"step": step, "waits": sum(gets[1:]), "longest": max(gets[1:]), "packs": packs, "steps": len(gets)})
  return step


def timed(batches: type, starts: list[float], gets: list[float]) -> type:
  """The class, which notes when the loop asks for each batch, and the seconds until it has the batch."""
  asked: dict[int, float] = {}

  def has(self: Any, step: int) -> bool:  # the loop asks this first, and waits if there is none
    asked.setdefault(step, time.perf_counter())
    return batches.has(self, step)

  def get(self: Any, step: int) -> Any:
    batch = batches.__getitem__(self, step)
    starts.append(asked.pop(step))
    gets.append(time.perf_counter() - starts[-1])
    return batch

  return type(batches.__name__, (batches,), {"__getitem__": get, "has": has})


def row(side: str, found: list[dict[str, Any]]) -> dict[str, Any]:
  """A row of the table."""
  packs = [seconds for answer in found for seconds in answer["packs"]]
  return {
    "side": side,
    "step, ms": 1e3 * report.median([answer["step"] for answer in found]),
    "spread": report.spread([answer["step"] for answer in found]),
    "waits, ms a step": 1e3 * report.median([answer["waits"] / answer["steps"] for answer in found]),
    "longest wait, ms": 1e3 * report.median([answer["longest"] for answer in found]),
    "epochs packed": len(packs) / len(found),
    "s to pack one": report.median(packs) if packs else None,
  }


if __name__ == "__main__":
  programs.run(main)
