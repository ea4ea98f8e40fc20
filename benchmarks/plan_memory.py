"""The memory of a training step: what `transformer-jax plan` says, beside what the compiler allocates.

    python benchmarks/plan_memory.py [configs/base.py configs/table3.py:C-N2 ...] [--devices 8] [--json FILE]

The step of one of --devices is compiled for this machine's device and not run. On a CPU that takes a minute for base
and several for big. XLA's number is that of `memory_analysis`: the arguments, which the result replaces, and the
temporary arrays.
"""

import argparse
import functools
from typing import Any

import jax
import jax.numpy as jnp
import report

from transformer_jax.analysis import plan
from transformer_jax.config import Config
from transformer_jax.config.flags import read_config
from transformer_jax.data.pipeline import Batch, row_type
from transformer_jax.runtime import devices
from transformer_jax.training.step import init_state, train_step
from transformer_jax.training.task import task_of

# The rows of Table 3 differ from base in heads, d_k, layers, width and dropout.
CONFIGS = (
  "configs/base.py",
  "configs/big.py",
  *(f"configs/table3.py:{row}" for row in ("A-h1", "B-dk16", "C-N2", "C-d256", "D-drop0.0")),
)


def main() -> None:
  args = parse()
  rows = []
  for name in args.configs:
    rows.append({"config": name, **compare(read_config(name, {}), args.devices)})
    report.progress(f"{name}: {rows[-1]['plan / XLA']:.3f}")
  report.finish("plan_memory", rows, args.json)


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Planned and allocated memory.", allow_abbrev=False)
  add = parser.add_argument
  add("configs", nargs="*", default=CONFIGS, metavar="CONFIG", help="files (default: base, big, rows of Table 3)")
  add("--devices", type=int, default=8, metavar="N", help="devices that share a batch (default 8)")
  report.add_arguments(parser, with_peers=False)
  return parser.parse_args()


def compare(config: Config, count: int) -> dict[str, Any]:
  """The columns of a config."""
  planned, allocated = plan.memory(config, count).total, allocated_bytes(config, count)
  return {
    "rows of a device": f"{plan.rows_at_a_time(config, count)} of {config.data.row_length}",
    "plan, GB": planned / 1e9,
    "XLA, GB": allocated / 1e9,
    "plan / XLA": planned / allocated,
  }


def allocated_bytes(config: Config, count: int) -> int:
  """The bytes that the compiled step needs on one of `count` devices."""
  task = task_of(config.model)
  rows = plan.rows_at_a_time(config, count) * config.train.accumulation
  batch = Batch(
    jax.ShapeDtypeStruct((1, rows, task.parts, config.data.row_length), row_type(config.model.vocab_size)),
    jax.ShapeDtypeStruct((1, rows), jnp.int32),
  )
  step = devices.over_devices(functools.partial(train_step, config, task), out_axes=(None, None), donate_state=True)
  state = jax.eval_shape(lambda: init_state(config, task))
  needed = step.lower(state, batch).compile().memory_analysis()
  return needed.argument_size_in_bytes + needed.temp_size_in_bytes


if __name__ == "__main__":
  main()
