"""This project: the training loop's own parts, without its log and checkpoints."""

import functools
from typing import Any

import jax
import numpy as np
import protocol

from transformer_jax import config as configs
from transformer_jax import parallel
from transformer_jax.compilation import use_compilation_cache
from transformer_jax.data import packing, pipeline
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.memory import use_huge_pages
from transformer_jax.training.step import init_state, train_step


def load(job: dict[str, Any]):
  use_compilation_cache()
  config = configs.from_dict(job["config"])
  tokenizer = Tokenizer.load(job["tokenizer"])
  state = jax.jit(lambda: init_state(config), out_shardings=parallel.on_all_devices())()
  step = parallel.over_devices(functools.partial(train_step, config), out_axes=(None, None), donate_state=True)
  done = 0

  @functools.cache
  def batches(row_length: int) -> pipeline.Batches:
    data = configs.from_dict(job["config"]).data
    data.row_length = row_length
    packed = pipeline.packed_rows(data, data.train, tokenizer)
    rows = config.train.batch_tokens // row_length
    return pipeline.Batches(packed, rows, config.train.seed, multiple=parallel.device_count())

  def train(steps: int, row_length: int) -> dict[str, int]:
    nonlocal state, done
    tokens = np.zeros(2, np.int64)
    unfinished = []
    for number in range(done, done + steps):
      batch = batches(row_length)[number]
      tokens += [np.count_nonzero(batch.rows[:, side]) for side in (packing.SOURCE, packing.TARGET)]
      state, metrics = step(state, parallel.shard(batch))
      unfinished.append(metrics)
      if len(unfinished) > parallel.steps_in_flight():
        jax.block_until_ready(unfinished.pop(0))
    jax.block_until_ready(state)
    done += steps
    return {"source_tokens": int(tokens[0]), "target_tokens": int(tokens[1])}

  return train


if __name__ == "__main__":
  use_huge_pages()  # as train.py does
  protocol.serve(load)
