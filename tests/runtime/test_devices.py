"""Work in threads; that eight devices compute what one does is shown where something is computed."""

import os
import threading
import time
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_jax.runtime import devices
from transformer_jax.runtime.errors import InputError


@pytest.fixture
def workers(monkeypatch):
  """Makes the machine seem to be another one; returns how many items it takes at once."""

  def machine(kind):
    monkeypatch.setattr(devices, "on_cpu", lambda: kind != "accelerator")
    monkeypatch.setattr(devices.jax, "local_device_count", lambda: 8 if kind == "several devices of a CPU" else 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(3)), raising=False)
    return {"accelerator": 2, "CPU": 3, "several devices of a CPU": 1}[kind]

  return machine


MACHINES = ["accelerator", "CPU", "several devices of a CPU"]


@pytest.mark.parametrize("kind", MACHINES)
def test_at_once_takes_as_many_items_as_suit_the_machine(kind, workers):
  count = workers(kind)
  all_at_work = threading.Barrier(count)
  at_work, most, lock = 0, 0, threading.Lock()

  def function(item):
    nonlocal at_work, most
    with lock:
      at_work += 1
      most = max(most, at_work)
    all_at_work.wait(timeout=60)
    with lock:
      at_work -= 1
    return item

  assert list(devices.parallel_map(function, range(4 * count))) == list(range(4 * count))
  assert most == count


def test_results_keep_their_order(workers):
  """The second item is done before the first."""
  workers("CPU")
  second = threading.Event()

  def function(item):
    if item == 0:
      assert second.wait(timeout=60)
    if item == 1:
      second.set()
    return item * 10

  assert list(devices.parallel_map(function, iter(range(7)))) == [0, 10, 20, 30, 40, 50, 60]
  assert list(devices.parallel_map(function, [])) == []


@pytest.mark.parametrize("kind", MACHINES)
def test_what_the_function_raises_comes_after_the_results_before_it(kind, workers):
  workers(kind)

  def function(item):
    if item == 4:
      raise KeyError("four")
    return item

  results = []
  with pytest.raises(KeyError, match="four"):
    for result in devices.parallel_map(function, range(9)):
      results.append(result)
  assert results == [0, 1, 2, 3]


def test_who_leaves_early_waits_for_nothing(workers):
  """As after a Ctrl-C, which ends the program."""
  workers("CPU")
  called, ended, left = [], [], threading.Event()

  def function(item):
    called.append(item)
    if item > 0:
      left.wait(timeout=60)
      ended.append(item)
    return item

  found = devices.parallel_map(function, range(100))
  try:
    assert next(found) == 0
    found.close()
    assert not ended and len(called) < 100
  finally:
    left.set()


def test_who_gets_an_error_waits_for_what_still_computes(workers):
  """The next call needs the devices."""
  workers("CPU")
  ended, begun = [], threading.Event()

  def function(item):
    if not item:
      begun.wait(timeout=60)
      raise KeyError("zero")
    begun.set()
    time.sleep(0.2)
    ended.append(item)

  with pytest.raises(KeyError, match="zero"):
    list(devices.parallel_map(function, range(2)))
  assert ended == [1]


def test_the_precision_of_a_context_holds_in_threads_too(workers):
  workers("CPU")
  read = lambda *_: jax.config.jax_default_matmul_precision  # noqa: E731
  with jax.default_matmul_precision("highest"):
    assert list(devices.parallel_map(read, range(7))) == ["highest"] * 7
  assert list(devices.parallel_map(read, range(7))) == [read()] * 7 != ["highest"] * 7


def test_what_is_compiled_meanwhile_is_not_compiled_again():
  traces, compilations = 0, []

  def function(state, batch):
    nonlocal traces
    traces += 1
    total = devices.sum_over_devices(jnp.sum(batch))
    return state + total, total

  def count(event, seconds, **more):
    if event == "/jax/core/compile/backend_compile_duration" and counting:
      compilations.append(more)

  jax.monitoring.register_event_duration_secs_listener(count)
  step = devices.over_devices(function, out_axes=(None, None), donate_state=True)
  batch = devices.shard(np.arange(16.0, dtype=np.float32))
  state = devices.replicate(np.float32(3))
  counting = True
  with devices.compile_async(step, jax.ShapeDtypeStruct((), np.float32), batch):
    pass
  assert (traces, len(compilations)) == (1, 1)
  assert [float(x) for x in step(state, batch)] == [123, 120]
  counting = False
  assert (traces, len(compilations)) == (1, 1)


def test_what_cannot_be_compiled_is_said():
  def function(state, batch):
    raise ValueError("no such product")

  step = devices.over_devices(function, out_axes=None)
  with (
    pytest.raises(ValueError, match="no such product"),
    devices.compile_async(step, np.float32(3), devices.shard(np.zeros(8))),
  ):
    pass


@pytest.mark.parametrize(
  ("platform", "version", "capability", "fits"),
  [
    ("gpu", "PJRT C API\ncuda 12090", "9.0", True),
    ("gpu", "PJRT C API\ncuda 13000", "10.3", True),
    ("gpu", "PJRT C API\ncuda 12090", "8.0", True),
    ("gpu", "PJRT C API\ncuda 12090", "7.5", False),
    ("gpu", "PJRT C API\nrocm 60000", "gfx942", False),
    ("cpu", "cpu", None, False),
  ],
)
def test_which_devices_have_cudnns_kernel_in_bfloat16(monkeypatch, platform, version, capability, fits):
  client = SimpleNamespace(platform_version=version)
  device = SimpleNamespace(platform=platform, client=client, compute_capability=capability)
  monkeypatch.setattr(jax, "local_devices", lambda: [device])
  assert devices.has_cudnn() == fits


def test_what_is_traced_for_devices_that_are_not_here():
  assert devices.platform() == "cpu"
  with devices.traced_for("gpu"):
    assert devices.platform() == "gpu" and not devices.on_cpu()
    with devices.traced_for("cpu"):
      assert devices.on_cpu()
    assert not devices.on_cpu()
    with devices.traced_for(None):
      assert devices.on_cpu()
  with pytest.raises(ValueError, match="once"), devices.traced_for("tpu"):
    raise ValueError("once")
  assert devices.on_cpu()


@pytest.mark.parametrize(("cpu", "count", "expected"), [(True, 8, 0), (True, 2, 0), (True, 1, 2), (False, 8, 2)])
def test_no_update_is_in_flight_on_several_devices_of_a_cpu(monkeypatch, cpu, count, expected):
  monkeypatch.setattr(devices, "on_cpu", lambda: cpu)
  monkeypatch.setattr(jax, "device_count", lambda: count)
  assert devices.steps_in_flight() == expected


def test_64_bits_are_refused():
  devices.require_devices()
  with jax.enable_x64(True), pytest.raises(InputError, match=r"JAX computes in 64 bits .* call jax\.config\.update"):
    devices.require_devices()


def test_the_memory_of_an_accelerator_is_what_its_device_reports(monkeypatch):
  reported = {"bytes_in_use": 3, "peak_bytes_in_use": 5, "bytes_limit": 7}
  device = SimpleNamespace(platform="gpu", memory_stats=lambda: reported)
  monkeypatch.setattr(jax, "local_devices", lambda: [device])
  assert (devices.memory(), devices.peak_memory()) == (7, (5, "the first device"))
  device.memory_stats = lambda: None  # as some platforms
  assert devices.memory() is None and devices.peak_memory()[1] == "the process"


def test_a_large_cpu_takes_sixteen_items_at_once(monkeypatch):
  monkeypatch.setattr(devices, "cores", lambda: 97)
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)
  assert devices.concurrency() == 16
