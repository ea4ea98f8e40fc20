"""A training step over some of the devices, as `devices.over_devices` calls it."""

import jax

from transformer_jax.data.batches import Batch
from transformer_jax.runtime import devices


def over(count: int, function, out_axes=(None, None), **options):
  """The function of a state and a batch over `count` devices, for the `shares` of the batch."""
  axes = {"in_axes": (None, 0), "out_axes": out_axes}
  return jax.pmap(function, axis_name=devices.AXIS, devices=jax.local_devices()[:count], **axes, **options)


def shares(batch: Batch, count: int) -> Batch:
  """The batch with an axis of devices."""
  return jax.tree.map(lambda x: x.reshape(count, -1, *x.shape[1:]), batch)
