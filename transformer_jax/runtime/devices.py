"""Devices: the only file, beside `hosts.py`, that knows about them.

Work is spread with `jax.pmap` over the axis "data". The state goes in and comes
out whole (`in_axes=None`, `out_axes=None`): one plain array a leaf, the same on
every device, without a leading device axis.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from transformer_jax.runtime.errors import InputError

AXIS = "data"

Tree = TypeVar("Tree")  # of arrays
Item = TypeVar("Item")
Result = TypeVar("Result")


def require_devices() -> None:
  """Raises InputError where JAX finds none of the devices that it is told to use."""
  try:
    jax.local_devices()
  except (RuntimeError, AssertionError) as error:  # the latter, without a word, for `cuda` where no plugin is
    asked, reason = os.environ.get("JAX_PLATFORMS", ""), f": {error}" if str(error) else ""
    raise InputError(
      f"JAX finds no device of JAX_PLATFORMS={asked}{reason}; unset it, and JAX takes what is there"
    ) from error


def _local_mesh() -> Mesh:
  return Mesh(np.array(jax.local_devices()), (AXIS,))


def on_all_devices() -> NamedSharding:
  """The placement of an array that every local device holds whole."""
  return NamedSharding(_local_mesh(), PartitionSpec())


def replicate(tree: Tree) -> Tree:
  """Places each array whole on every local device."""
  return jax.device_put(tree, on_all_devices())


def on_first_device(tree: Tree) -> Tree:
  """Places each array on the first local device alone."""
  return jax.device_put(tree, jax.local_devices()[0])


def abstract_on_devices(tree: Tree) -> Tree:
  """Shapes and types of what `replicate` would place, with its placement."""
  placement = on_all_devices()
  return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=placement), tree)


def shard(tree: Tree) -> Tree:
  """Splits the leading axis over the local devices: `[rows, ...]` -> `[devices, rows / devices, ...]`, placed."""
  devices = jax.local_device_count()
  placement = NamedSharding(_local_mesh(), PartitionSpec(AXIS))
  return jax.tree.map(lambda x: jax.device_put(x.reshape(devices, -1, *x.shape[1:]), placement), tree)


def over_devices(function: Callable, *, out_axes: Any, donate_state: bool = False, alone: bool = False) -> Callable:
  """`function(state, batch)` on every device, `state` whole and `batch` a share each, as `shard` made them.

  Inside, `sum_over_devices` adds up what the devices found; what is returned
  with `out_axes=None` must be equal on all of them.

  Args:
    function: of the state and one device's share of the batch.
    out_axes: None for a result that is returned whole, 0 for one that is returned by device.
    donate_state: whether the state's memory is used for the result.
    alone: whether this host works by itself; the others must otherwise make the same call.
  """
  return jax.pmap(
    function,
    axis_name=AXIS,
    in_axes=(None, 0),
    out_axes=out_axes,
    donate_argnums=(0,) if donate_state else (),
    devices=jax.local_devices() if alone else None,
  )


@contextmanager
def compile_async(function: Any, state: Any, batch: Any) -> Iterator[None]:
  """Compiles what `over_devices` gave, or reads it from the cache, in a thread beside what is done inside.

  The first call then finds it ready. It is left to that call where the function is not to be compiled (`op_by_op`),
  and on several hosts, where `pmap` takes arrays and no shapes.

  Args:
    function: of state and batch.
    state: shapes and types are enough.
    batch: as `shard` makes it.
  """
  if not hasattr(function, "lower") or jax.process_count() > 1:
    yield
    return
  with ThreadPoolExecutor(1) as executor:
    # Without its placement a state would be traced as another one than that of the call.
    compiled = executor.submit(lambda: function.lower(abstract_on_devices(state), batch).compile())
    yield
    compiled.result()


def op_by_op(function: Callable) -> Callable:
  """`over_devices(function, out_axes=None)` for finding errors: on one device, uncompiled, operation by operation."""
  return jax.vmap(function, axis_name=AXIS, in_axes=(None, 0), out_axes=None)


def sum_over_devices(tree: Tree) -> Tree:
  """The sum over all devices of all hosts inside `over_devices`; elsewhere, as under `jax.jit` alone, `tree` itself."""
  try:
    return jax.lax.psum(tree, AXIS)
  except NameError:  # there is no such axis, so what was computed here is of the whole batch
    return tree


def is_main_host() -> bool:
  """Whether this host writes the logs."""
  return jax.process_index() == 0


def device_count() -> int:
  """Devices of all hosts."""
  return jax.device_count()


def local_device_count() -> int:
  """Devices of this host."""
  return jax.local_device_count()


def steps_in_flight() -> int:
  """How many steps may wait for the devices: enough to keep them busy, few enough to know where the run is.

  None on several devices of CPUs, whose collectives can deadlock.
  """
  return 0 if on_cpu() and jax.device_count() > 1 else 2


def on_cpu() -> bool:
  """Whether the devices are the processor's own cores."""
  return jax.local_devices()[0].platform == "cpu"


def has_cudnn() -> bool:
  """Whether the devices are NVIDIA's GPUs with bfloat16, of compute capability 8 and above."""
  device = jax.local_devices()[0]
  cuda = device.platform == "gpu" and "cuda" in device.client.platform_version.lower()
  return cuda and float(device.compute_capability) >= 8


def at_once(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
  """`function` of each item, in order, `at_a_time` of them, where one alone leaves the machine idle."""
  with ThreadPoolExecutor(at_a_time()) as executor:
    yield from executor.map(function, items)


def at_a_time() -> int:
  """How many items to work on side by side.

  The small operations of decoding keep one core busy, so that a CPU takes as many
  items as it has cores; an accelerator takes two, one of which is prepared or
  read back while the other is computed. Several devices of one CPU take one, as
  their collectives can deadlock.
  """
  return 2 if not on_cpu() else 1 if jax.local_device_count() > 1 else min(cores(), 16)


def cores() -> int:
  """Cores that this process may use."""
  return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory() -> int | None:
  """Bytes that a device has, or the machine where its devices are the processor's; None where that is not told."""
  if not on_cpu():
    return (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit")
  if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", ()):
    return None
  return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def peak_memory() -> tuple[int, str]:
  """The most bytes that were in use so far, and of what: a device where it tells, else this whole process."""
  statistics = jax.local_devices()[0].memory_stats() or {}
  if "peak_bytes_in_use" in statistics:
    return statistics["peak_bytes_in_use"], "the first device"
  import resource  # not on every system

  unit = 1 if sys.platform == "darwin" else 1024
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit, "the process"


def describe() -> dict[str, Any]:
  """What the numbers of a run depend on."""
  return {
    "platform": jax.local_devices()[0].platform,
    "kind": jax.local_devices()[0].device_kind,
    "devices": jax.device_count(),
    "hosts": jax.process_count(),
  }
