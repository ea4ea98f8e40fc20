"""Model FLOPs utilisation of whole steps in bfloat16, by model, attention, row length and batch.

The operations are those of `utilisation.py`. The rate that they are compared with is that of square matmuls on the same
device, measured by the same process.
"""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import absent
import jax
import numpy as np
import part
import roofline
import sizes
import utilisation

from transformer_jax.analysis import requirements
from transformer_jax.config import Config
from transformer_jax.data.batches import Batch
from transformer_jax.model.config import Remat
from transformer_jax.runtime import devices
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.step import init_state, train_step

STEPS, TURNS = 10, 3


class Step(NamedTuple):
  """A compiled step with its state and batch.

  Attributes:
    compiled: the program.
    state: the state, which the first call uses up.
    batch: the batch on the device.
    rows: the batch's rows.
  """

  compiled: Any
  state: Any
  batch: Any
  rows: np.ndarray


def prepare(config: Config) -> Step:
  """Compiles the step of a config, with a batch of random tokens."""
  rows = sizes.packed_rows(config.model, config.data.row_length, config.train.batch_tokens // config.data.row_length)
  state = jax.jit(lambda: init_state(config, TASK), out_shardings=devices.on_all_devices())()
  batch = devices.shard(Batch(rows, np.arange(len(rows), dtype=np.int32)))
  step = devices.over_devices(functools.partial(train_step, config, TASK), out_axes=(None, None), donate_state=True)
  return Step(step.lower(state, batch).compile(), state, batch, rows)


def seconds_of(run: Callable[[], Any], steps: int) -> float:
  """The seconds of one of `steps` calls; one waits while another runs, as in training."""
  start, last = time.perf_counter(), None
  for _ in range(steps):
    before, last = last, run()
    jax.block_until_ready(before)
  jax.block_until_ready(last)
  return (time.perf_counter() - start) / steps


def measure(config: Config, tiny: bool) -> part.Rows:
  """The row of a step."""
  step = prepare(config)
  state = step.state

  def run() -> Any:
    nonlocal state
    state, metrics = step.compiled(state, step.batch)
    return metrics

  jax.block_until_ready([run(), run()])
  times = [seconds_of(run, 1 if tiny else STEPS) for _ in range(TURNS)]
  median = sorted(times)[TURNS // 2]
  pairs = utilisation.lengths(step.rows)
  rate = 3 * utilisation.forward_flops(config.model, pairs[:, 0], pairs[:, 1]) / median
  return [
    {
      "s per step": median,
      "spread": (max(times) - min(times)) / median,
      "target tokens/s": pairs[:, 1].sum() / median,
      "TFLOP/s": rate / 1e12,
      "utilisation, %": 100 * rate / matmuls(tiny),
      "memory, GB": absent.bytes_of(step.compiled) / 1e9,
      "plan, GB": requirements.memory(config).total / 1e9,
    }
  ]


@functools.cache
def matmuls(tiny: bool) -> float:
  """The operations per second of square matmuls, measured once in a process."""
  return roofline.matmul_rate(tiny)


def programs(tiny: bool) -> dict[str, Config]:
  """The steps that are measured, the most important first, as the time may not suffice for all."""
  paper = 25_088
  found = [(name, fused, 128, paper, Remat.NONE) for name in ("base", "big") for fused in (True, False)]
  found += [(name, True, row, paper, Remat.NONE) for row in (256, 64) for name in ("base", "big")]
  found += [(name, True, 128, 2 * paper, Remat.NONE) for name in ("base", "big")]
  found += [("big", False, 128, paper, Remat.LAYER)]
  found = [("tiny", False, 32, 128, Remat.NONE)] if tiny else found
  return {
    f"{name}, {'fused' if fused else 'plain'}, rows of {row}, {tokens:,} tokens a side"
    + (f", {remat.value} computed again" if remat is not Remat.NONE else ""): sizes.config(
      dataclasses.replace(sizes.models(tiny)[name], fused_attention=fused, remat=remat), row, tokens
    )
    for name, fused, row, tokens, remat in found
  }


def cases(tiny: bool) -> dict[str, part.Case]:
  return {name: functools.partial(measure, config, tiny) for name, config in programs(tiny).items()}


if __name__ == "__main__":
  part.run(cases)
