"""`jax.shard_map` over a mesh, in place of `jax.pmap`, gives the same bits behind the same four functions.

JAX only maintains `pmap`. `over_devices` below is all that would change, in `runtime/devices.py` alone: `replicate`,
`shard` and `sum_over_devices` stay.
"""

import functools
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from tests.training.test_step import CONFIG, copying_pairs, packed
from transformer_jax.data.batches import Batch
from transformer_jax.runtime import devices
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.step import eval_step, init_state, train_step


def over_devices(function, *, out_axes: Any, donate_state=False, alone=False):
  """The same as `devices.over_devices`, by `shard_map`."""
  mesh = Mesh(np.array(jax.local_devices() if alone else jax.devices()), (devices.AXIS,))
  by_axis = functools.partial(jax.tree.map, is_leaf=lambda axis: axis is None)

  def on_a_device(state, batch):
    """A device's share keeps the axis of the devices, with the length 1."""
    result = function(state, jax.tree.map(lambda x: x[0], batch))
    return by_axis(lambda axis, x: x if axis is None else jax.tree.map(lambda y: y[None], x), out_axes, result)

  specs = by_axis(lambda axis: P() if axis is None else P(devices.AXIS), out_axes)
  mapped = jax.shard_map(on_a_device, mesh=mesh, in_specs=(P(), P(devices.AXIS)), out_specs=specs, check_vma=False)
  return jax.jit(mapped, donate_argnums=(0,) if donate_state else ())


def results(over) -> list[Any]:
  """What three updates and an evaluation give, and a result with an axis of devices."""
  assert jax.local_device_count() == 8
  rows = packed(copying_pairs(60))[:8]
  batch = devices.shard(Batch(rows, np.arange(8, dtype=np.int32)))
  step = over(functools.partial(train_step, CONFIG, TASK), out_axes=(None, None), donate_state=True)
  state, metrics = devices.replicate(init_state(CONFIG, TASK)), []
  for _ in range(3):
    state, found = step(state, batch)
    metrics.append(found)
  sums = over(functools.partial(eval_step, CONFIG, TASK), out_axes=None)(state.params, batch)
  lengths = over(lambda state, batch: state.step + (batch.rows > 0).sum(axis=-1), out_axes=0, alone=True)(state, batch)
  return jax.device_get([state, metrics, sums, lengths])


@pytest.mark.long
def test_the_same_bits():
  expected, found = jax.tree.leaves(results(devices.over_devices)), jax.tree.leaves(results(over_devices))
  assert len(expected) == len(found) > 50
  for a, b in zip(expected, found, strict=True):
    assert (a.shape, a.dtype) == (b.shape, b.dtype) and a.tobytes() == b.tobytes()
