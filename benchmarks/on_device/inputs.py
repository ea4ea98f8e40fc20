"""The time to prepare a batch, and a training step with the next batch prepared meanwhile, as in training."""

import functools
import itertools
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import part
import training

from transformer_jax.config import Config
from transformer_jax.data.batches import Batches
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.row_cache import PackedRows
from transformer_jax.runtime import devices

STEPS = 20


def measure(config: Config, distinct: int) -> part.Rows:
  """The row of a step; `distinct` packed rows on disk are drawn from."""
  step = training.prepare(config)
  state = step.state
  with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "rows.npy"
    np.save(file, np.resize(step.rows, (distinct, *step.rows.shape[1:])))
    packed = PackedRows(np.load(file, mmap_mode="r"), PackingReport(), "")
    batches = Batches(packed, len(step.rows), 0)
    start = time.perf_counter()
    jax.block_until_ready([devices.shard(batches[i]) for i in range(STEPS)])
    preparing = (time.perf_counter() - start) / STEPS
    numbers = itertools.count()

    def run(prepared: bool) -> Any:
      nonlocal state
      batch = devices.shard(batches[next(numbers)]) if prepared else step.batch
      state, metrics = step.compiled(state, batch)
      return metrics

    jax.block_until_ready([run(False), run(True)])
    same, prepared = (training.seconds_of(functools.partial(run, which), STEPS) for which in (False, True))
  return [
    {
      "ms to prepare a batch": 1e3 * preparing,
      "ms a step, the same batch": 1e3 * same,
      "ms a step, the next batch": 1e3 * prepared,
      "steps ahead": same / preparing,
    }
  ]


def cases(tiny: bool) -> dict[str, part.Case]:
  name, config = next(iter(training.programs(tiny).items()))
  return {name: functools.partial(measure, config, 50 if tiny else 100_000)}


if __name__ == "__main__":
  part.run(cases)
