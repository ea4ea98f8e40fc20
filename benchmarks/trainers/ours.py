"""This project's trainer: the parts of the training loop, without log and checkpoints.

The command line has the length of packed rows after the folder, and then the type of matmuls and activations.
"""

import functools
import sys
from pathlib import Path
from typing import Any

import jax
import protocol

from transformer_jax.config import serialization
from transformer_jax.data import pipeline
from transformer_jax.data.batches import Batches
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.model.config import Dtype
from transformer_jax.runtime import devices
from transformer_jax.runtime.compilation_cache import use_compilation_cache
from transformer_jax.runtime.process import prefer_cublas, use_huge_pages
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.step import init_state, train_step


def load(job: dict[str, Any], folder: Path) -> protocol.Answer:
  use_compilation_cache()
  config = serialization.from_dict(job["config"])
  config.data.row_length, config.model.dtype = int(sys.argv[2]), Dtype(sys.argv[3])
  packed = pipeline.packed_rows(config.data, config.data.train, SentencePieceTokenizer.load(folder / "tokenizer.model"))
  rows = config.train.batch_tokens // config.data.row_length
  batches = Batches(packed, rows, config.train.seed, multiple=devices.device_count())
  state = jax.jit(lambda: init_state(config, TASK), out_shardings=devices.on_all_devices())()
  step = devices.over_devices(functools.partial(train_step, config, TASK), out_axes=(None, None), donate_state=True)
  in_flight: list[Any] = []

  def update(number: int) -> tuple[jax.Array, jax.Array]:
    nonlocal state
    state, metrics = step(state, devices.shard(batches[number]))
    in_flight.append(metrics)
    if len(in_flight) > devices.steps_in_flight():
      jax.block_until_ready(in_flight.pop(0))
    return metrics["sums"].loss, metrics["sums"].tokens

  return protocol.trainer(update)


if __name__ == "__main__":
  use_huge_pages()  # as train.py does
  prefer_cublas()
  protocol.serve(load)
