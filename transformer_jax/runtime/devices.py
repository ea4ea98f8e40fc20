"""Devices. Only this file and `hosts.py` know about them.

`jax.pmap` spreads the work over the axis "data". The state goes in and comes out
whole (`in_axes=None`, `out_axes=None`): each leaf is one array without a device
axis, the same on every device. JAX only maintains `pmap`: its successor,
`jax.shard_map`, gives the same bits behind the functions of this file
(`tests/runtime/test_shard_map.py`).
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.process import cores
from transformer_jax.runtime.values import JsonObject, PyTree

_PRECISION = "jax_default_matmul_precision"
AXIS = "data"

_traced_for: ContextVar[str | None] = ContextVar("traced_for", default=None)

Tree = TypeVar("Tree")  # of arrays
Item = TypeVar("Item")
Result = TypeVar("Result")


def require_devices() -> None:
  """Raises InputError if JAX finds no device of the platforms that it is told to use, or computes in 64 bits."""
  if jax.config.read("jax_enable_x64"):
    raise InputError(
      "JAX computes in 64 bits (jax_enable_x64), but the types of a model are those of its config: call "
      "jax.config.update('jax_enable_x64', False) before"
    )
  try:
    jax.local_devices()
  except (RuntimeError, AssertionError) as error:  # for `cuda` without its plugin, JAX raises an empty AssertionError
    asked, reason = os.environ.get("JAX_PLATFORMS", ""), f": {error}" if str(error) else ""
    if not asked:  # a plugin is installed that cannot begin, as with an old driver
      raise InputError(f"JAX cannot use the devices here{reason}; JAX_PLATFORMS=cpu computes without them") from error
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
  """The shapes, types and placement of the arrays that `replicate` would return."""
  placement = on_all_devices()
  return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=placement), tree)


def shard(tree: Tree) -> Tree:
  """Splits the leading axis over the local devices: `[rows, ...]` -> `[devices, rows / devices, ...]`."""
  devices = jax.local_device_count()
  placement = NamedSharding(_local_mesh(), PartitionSpec(AXIS))
  return jax.tree.map(lambda x: jax.device_put(x.reshape(devices, -1, *x.shape[1:]), placement), tree)


def over_devices(function: Callable, *, out_axes: PyTree, donate_state: bool = False, alone: bool = False) -> Callable:
  """Runs `function(state, batch)` on every device, with the whole `state` and the device's share of `batch`.

  `shard` makes the shares. In `function`, `sum_over_devices` adds up the results
  of the devices; a result with `out_axes=None` must be equal on all devices.

  Args:
    function: (state, one device's share of the batch) -> result.
    out_axes: None for a result that is returned once, 0 for a result with a device axis.
    donate_state: whether the result may reuse the state's memory.
    alone: whether this host works by itself; otherwise all hosts must make the same call.
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
def compile_async(function: Any, state: PyTree, batch: PyTree) -> Iterator[None]:
  """Compiles a function of `over_devices`, or reads it from the cache, in a thread while the body runs.

  The first call then finds it compiled. Two cases are left to that call: a function of `op_by_op`, which is not
  compiled, and several hosts, where `pmap` needs arrays instead of shapes. The body must not import a package that
  calls `etils.epy.lazy_imports`, as grain does: it breaks what the compiler's thread imports meanwhile.

  Args:
    function: the function of state and batch.
    state: the state, or its shapes and types.
    batch: the batch, split by `shard`.
  """
  if not hasattr(function, "lower") or jax.process_count() > 1:
    yield
    return
  with ThreadPoolExecutor(1) as executor:
    # Without a placement, the state would be traced as a different one than that of the call.
    compile_ = _with_precision_from_here(lambda: function.lower(abstract_on_devices(state), batch).compile())
    compiled = executor.submit(compile_)
    yield
    compiled.result()


def _with_precision_from_here(function: Callable[..., Result]) -> Callable[..., Result]:
  """`function` for other threads, with the precision of matmuls that JAX has in this one, as a context may set it."""
  precision = jax.config.values[_PRECISION]

  def run(*arguments: Any) -> Result:
    if jax.config.values[_PRECISION] == precision:
      return function(*arguments)
    with jax.default_matmul_precision(precision):
      return function(*arguments)

  return run


def op_by_op(function: Callable) -> Callable:
  """`over_devices(function, out_axes=None)` for debugging: on one device, operation by operation, not compiled."""
  return jax.vmap(function, axis_name=AXIS, in_axes=(None, 0), out_axes=None)


def sum_over_devices(tree: Tree) -> Tree:
  """The sum over all devices of all hosts inside `over_devices`; elsewhere, such as under `jax.jit`, `tree` itself."""
  try:
    return jax.lax.psum(tree, AXIS)
  except NameError:  # there is no such axis, so `tree` already covers the whole batch
    return tree


def is_main_host() -> bool:
  """Whether this is host 0, which alone reads and writes the run folder."""
  return jax.process_index() == 0


def device_count() -> int:
  """The number of devices of all hosts."""
  return jax.device_count()


def local_device_count() -> int:
  """The number of devices of this host."""
  return jax.local_device_count()


def steps_in_flight() -> int:
  """The most steps that may wait for the devices: enough to keep them busy, few enough to know the run's progress.

  It is 0 on several CPU devices, as their collectives can deadlock.
  """
  return 0 if on_cpu() and jax.device_count() > 1 else 2


def on_cpu() -> bool:
  """Whether the devices are CPUs."""
  return platform() == "cpu"


def platform() -> str:
  """The platform of the devices here, or that of `traced_for`: `cpu`, `gpu` or `tpu`."""
  return _traced_for.get() or jax.local_devices()[0].platform


@contextmanager
def traced_for(platform: str | None) -> Iterator[None]:
  """A context in which functions are traced for devices of this platform, which need not be here.

  None means the devices here.

  It is for tracing alone: the body must run nothing on the devices. Threads that begin in the body do not see it.
  """
  token = _traced_for.set(platform)
  try:
    yield
  finally:
    _traced_for.reset(token)


def has_cudnn() -> bool:
  """Whether the devices are NVIDIA GPUs of compute capability 8 or more, which have bfloat16."""
  device = jax.local_devices()[0]
  cuda = device.platform == "gpu" and "cuda" in device.client.platform_version.lower()
  return cuda and float(device.compute_capability) >= 8


def parallel_map(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
  """`function` of each item, in order; `concurrency()` items are computed side by side, to keep the machine busy."""
  executor, waits = ThreadPoolExecutor(concurrency()), False
  try:
    yield from executor.map(_with_precision_from_here(function), items)
  except Exception:
    waits = True  # the next call, or the end of the program, needs the devices
    raise
  finally:  # after a Ctrl-C nobody waits for what is still computed
    executor.shutdown(wait=waits, cancel_futures=True)


def concurrency() -> int:
  """The number of items to work on side by side.

  The small operations of decoding keep one core busy, so a CPU takes as many
  items as it has cores, up to 16. An accelerator takes two: one is prepared or
  read back while the other is computed. Several CPU devices take one, as their
  collectives can deadlock.
  """
  return 2 if not on_cpu() else 1 if jax.local_device_count() > 1 else min(cores(), 16)


def memory() -> int | None:
  """The bytes of memory of a device, or of the machine if the devices are CPUs; None if unknown."""
  if not on_cpu():
    return (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit")
  if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", ()):
    return None
  return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def peak_memory() -> tuple[int, str]:
  """The most bytes in use so far, and what used them: the first device if it reports this, else this process."""
  statistics = jax.local_devices()[0].memory_stats() or {}
  if "peak_bytes_in_use" in statistics:
    return statistics["peak_bytes_in_use"], "the first device"
  import resource  # not on every system

  unit = 1 if sys.platform == "darwin" else 1024
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit, "the process"


def describe() -> JsonObject:
  """The properties of the devices and hosts that a run's numbers depend on."""
  return {
    "platform": jax.local_devices()[0].platform,
    "kind": jax.local_devices()[0].device_kind,
    "devices": jax.device_count(),
    "hosts": jax.process_count(),
  }
