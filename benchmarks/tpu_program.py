"""Compiles the update of base and big for TPUs that are not here, and tells what the program needs.

    JAX_PLATFORMS=cpu python benchmarks/tpu_program.py [--topology v5e:2x4] [--configs base big] [--json FILE]

It needs `pip install -e '.[tpu]'` and no TPU: the compiler of TPUs runs on any CPU. The program is the one that
train.py runs on a TPU VM with these chips, with the state whole on each chip and the batch split. "memory" is what a
chip needs by the compiler's own figures, and "plan" what `transformer-jax plan` says.
"""

import argparse
import functools
import importlib
import os
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import report
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from transformer_jax.analysis import plan
from transformer_jax.data.pipeline import Batch
from transformer_jax.runtime import devices
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.step import abstract_state, train_step


def main() -> None:
  parser = argparse.ArgumentParser(description="Programs for TPUs that are not here.", allow_abbrev=False)
  add = parser.add_argument
  add("--topology", default="v5e:2x4", metavar="NAME", help="the chips, as libtpu names them (default v5e:2x4)")
  add("--configs", nargs="+", default=["base", "big"], metavar="NAME", help="of configs/ (default base big)")
  report.add_arguments(parser, with_peers=False)
  args = parser.parse_args()
  # Without these, libtpu asks the network what machine this is.
  os.environ |= {"TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost"}
  chips = topologies.get_topology_desc(platform="tpu", topology_name=args.topology).devices
  devices.on_cpu = lambda: False  # the program is traced here, but not for this machine
  report.finish("tpu_program", [measure(name, chips) for name in args.configs], args.json)


def measure(name: str, chips: list[Any]) -> dict[str, Any]:
  """The row of a config."""
  config = importlib.import_module(f"configs.{name}").get_config()
  rows = plan.rows_at_a_time(config, len(chips)) * config.train.accumulation
  mesh = Mesh(np.array(chips), (devices.AXIS,))
  whole, split = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), (devices.AXIS,)))

  def placed(shape: tuple[int, ...], dtype: Any, placement: NamedSharding) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype, sharding=placement)

  state = jax.tree.map(lambda x: placed(x.shape, x.dtype, whole), abstract_state(config, TASK))
  packed = (len(chips), rows, 4, config.data.row_length)
  batch = Batch(placed(packed, jnp.uint16, split), placed(packed[:2], jnp.int32, split))
  # `devices.over_devices` for chips that this process does not have.
  step = jax.pmap(
    functools.partial(train_step, config, TASK),
    axis_name=devices.AXIS,
    in_axes=(None, 0),
    out_axes=(None, None),
    donate_argnums=(0,),
    devices=chips,
  )
  lowered, start = step.lower(state, batch), time.perf_counter()
  compiled = lowered.compile()
  seconds, needed = time.perf_counter() - start, compiled.memory_analysis()
  return {
    "config": name,
    "chips": f"{len(chips)} {chips[0].device_kind}",
    "type": config.model.dtype.value,
    "rows of a chip": rows,
    "memory, GB": (needed.argument_size_in_bytes + needed.temp_size_in_bytes) / 1e9,
    "plan, GB": plan.memory(config, len(chips)).total / 1e9,
    "all-reduces": compiled.as_text().count("all-reduce-done") or compiled.as_text().count(" all-reduce("),
    "compiling, s": seconds,
  }


if __name__ == "__main__":
  main()
