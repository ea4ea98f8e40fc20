"""Programs for devices that are not here: XLA's compilers for TPUs and for NVIDIA's GPUs run on any CPU.

`pip install -e '.[tpu]'` installs the one for TPUs. `pip install -e '.[gpu]'` installs the one for GPUs, whose program
`ptxas` must be on the path; it is in the folder `bin` of a package of `nvidia`.
"""

import functools
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from transformer_jax.analysis import requirements
from transformer_jax.config import Config
from transformer_jax.data.batches import Batch
from transformer_jax.data.tokenizer import row_type
from transformer_jax.runtime import devices
from transformer_jax.runtime.process import prefer_cublas
from transformer_jax.training.step import abstract_state, train_step
from transformer_jax.training.task import task_of

H200 = Path(__file__).parent / "on_device" / "h200.txtpb"


def tpus(topology: str) -> list[Any]:
  """The chips of a topology as libtpu names it, such as v5e:2x4."""
  # Without these, libtpu asks the network what machine this is.
  os.environ |= {"TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost"}
  return list(topologies.get_topology_desc(platform="tpu", topology_name=topology).devices)


def gpu() -> Any:
  """An H200, from the description that XLA has of one."""
  prefer_cublas(here=True)  # as on a machine with such a GPU
  return topologies.get_topology_desc("h200", "cuda", target_config=H200.read_text(), topology="1x1x1").devices[0]


def lowered_update(config: Config, chips: list[Any], share: int) -> Any:
  """The update that train.py runs on these devices, with the state whole on each and a `share`-th of the batch."""
  task = task_of(config.model)
  rows = requirements.rows_at_a_time(config, share) * config.train.accumulation
  mesh = Mesh(np.array(chips), (devices.AXIS,))
  whole, split = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), (devices.AXIS,)))

  def placed(shape: tuple[int, ...], dtype: Any, placement: NamedSharding) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype, sharding=placement)

  state = jax.tree.map(lambda x: placed(x.shape, x.dtype, whole), abstract_state(config, task))
  packed = (len(chips), rows, task.parts, config.data.row_length)
  batch = Batch(placed(packed, row_type(config.model.vocab_sizes), split), placed(packed[:2], jnp.int32, split))
  # `devices.over_devices` for chips that this process does not have.
  step = jax.pmap(
    functools.partial(train_step, config, task),
    axis_name=devices.AXIS,
    in_axes=(None, 0),
    out_axes=(None, None),
    donate_argnums=(0,),
    devices=chips,
  )
  with devices.traced_for("gpu" if chips[0].platform == "cuda" else chips[0].platform):
    return step.lower(state, batch)


def bytes_of(compiled: Any) -> int:
  """The bytes that a compiled step needs on a device: arguments, which the result replaces, and temporary arrays."""
  needed = compiled.memory_analysis()
  return needed.argument_size_in_bytes + needed.temp_size_in_bytes
