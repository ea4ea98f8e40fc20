"""Traced programs on disk: read by a second start, told apart by all that tracing reads, and made again if damaged."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_jax.runtime import devices, trace_cache

FIVE = np.arange(5, dtype=np.float32)


@pytest.fixture
def start(tmp_path, monkeypatch):
  """A function that keeps a program as a process of its own would, and counts how often the program is traced."""
  monkeypatch.setattr(trace_cache, "_UNCHANGED_SINCE", time.time())
  monkeypatch.setattr(devices, "device_count", lambda: 1)
  monkeypatch.setattr(trace_cache, "_folder", tmp_path / "traced")
  traced = []

  def program(x, factors):
    traced.append(1)
    return SimpleResult(x * factors["a"], x.sum())

  def begin(key="key", x=FIVE):
    before = len(traced)
    found = trace_cache.kept(program, key, lambda *_: SimpleResult("product", "sum"))(x, {"a": jnp.float32(3)})
    assert jax.tree.map(lambda y: y.tolist(), found) == SimpleResult((3 * x).tolist(), x.sum().tolist())
    return len(traced) - before

  return SimpleNamespace(begin=begin, folder=tmp_path / "traced", program=program, traced=traced)


@jax.tree_util.register_pytree_node_class
class SimpleResult(tuple):
  def __new__(cls, *parts):
    return super().__new__(cls, parts)

  def tree_flatten(self):
    return list(self), None

  @classmethod
  def tree_unflatten(cls, _, parts):
    return cls(*parts)


def test_a_second_start_traces_nothing(start):
  assert start.begin() == 1
  assert start.begin() == 0


@pytest.mark.parametrize("damage", [lambda whole: whole[:-1], lambda whole: b"", lambda whole: whole[::-1]])
def test_a_damaged_entry_is_made_again(start, damage):
  start.begin()
  [entry] = start.folder.iterdir()
  whole = entry.read_bytes()
  entry.write_bytes(damage(whole))
  assert start.begin() == 1
  assert entry.read_bytes()[32:] and start.begin() == 0


def test_whatever_tracing_reads_is_part_of_the_name(start, monkeypatch):
  start.begin()
  assert start.begin(key="other") == 1
  assert start.begin(x=np.arange(7, dtype=np.float32)) == 1
  with jax.debug_nans(True):
    assert start.begin() == 1
  monkeypatch.setattr(devices, "memory", lambda: 1)
  assert start.begin() == 1


def test_changed_code_has_other_entries(start, monkeypatch, tmp_path):
  package = tmp_path / "package"
  package.mkdir()
  (package / "model.py").write_text("x = 1")
  long_ago = time.time() - 1000

  def as_new():
    os.utime(package / "model.py", (long_ago, long_ago))
    trace_cache._files.cache_clear()
    trace_cache._code.cache_clear()

  monkeypatch.setattr(trace_cache, "_PACKAGE", package)
  as_new()
  assert [start.begin(), start.begin()] == [1, 0]
  (package / "model.py").write_text("x = 2")
  as_new()
  assert [start.begin(), start.begin()] == [1, 0]
  (package / "model.py").write_text("x = 3")  # while this process runs: its own code may be another
  monkeypatch.setattr(trace_cache, "_UNCHANGED_SINCE", time.time() - 60)
  entries = sorted(start.folder.iterdir())
  assert [start.begin(), start.begin()] == [1, 1]
  assert sorted(start.folder.iterdir()) == entries
  monkeypatch.undo()
  trace_cache._files.cache_clear()
  trace_cache._code.cache_clear()


def test_files_that_come_and_go_stop_nothing(start, monkeypatch, tmp_path):
  package = tmp_path / "package"
  package.mkdir()
  (package / ".#model.py").symlink_to("user@machine.1234:567")  # as Emacs locks a file
  for name in ("model.py", "gone.py"):
    (package / name).write_text("x = 1")
    os.utime(package / name, (0, 0))
  monkeypatch.setattr(trace_cache, "_PACKAGE", package)
  trace_cache._files.cache_clear()
  trace_cache._code.cache_clear()
  assert [start.begin(), start.begin()] == [1, 0]
  (package / "gone.py").unlink()  # as an upgrade may do while a server runs
  assert start.begin() == 1
  monkeypatch.undo()
  trace_cache._files.cache_clear()
  trace_cache._code.cache_clear()


def test_the_entries_that_were_not_used_for_the_longest_time_go(start, monkeypatch):
  monkeypatch.setattr(trace_cache, "_MOST", 2)
  for day, key in enumerate("ab"):
    start.begin(key)
    for entry in start.folder.iterdir():
      os.utime(entry, (day, day))
  start.begin("b")
  start.begin("c")
  assert [start.begin(key) for key in "bca"] == [0, 0, 1]


def test_without_a_folder_or_with_several_devices_the_function_is_itself(start, monkeypatch):
  monkeypatch.setattr(devices, "device_count", lambda: 8)
  assert trace_cache.kept(start.program, "key", None) is start.program
  monkeypatch.setattr(devices, "device_count", lambda: 1)
  trace_cache.use(None)
  assert trace_cache.kept(start.program, "key", None) is start.program


def test_shapes_are_those_of_eval_shape(start):
  def init():
    start.traced.append(1)
    return {"layer": {"kernel": jnp.zeros((3, 5)), "bias": jnp.zeros(5, jnp.bfloat16)}, "steps": jnp.zeros((), int)}

  first, second = (trace_cache.kept_shapes(init, "key") for _ in range(2))
  assert len(start.traced) == 1
  expected = jax.eval_shape(init)
  for found in (first, second):
    assert jax.tree.map(lambda x: (x.shape, x.dtype), found) == jax.tree.map(lambda x: (x.shape, x.dtype), expected)


def test_code_of_other_packages_is_not_ones_own():
  assert trace_cache.is_own(trace_cache.kept, SimpleNamespace()) is False
  assert trace_cache.is_own(trace_cache.kept, devices.shard)
  assert not trace_cache.is_own(test_a_second_start_traces_nothing)
  assert not trace_cache.is_own_module("transformer_jax_mine.model")  # its name only begins as ours does


def test_threads_trace_a_program_once(start):
  """As when several batches of one size are translated side by side."""
  slow = threading.Barrier(4)
  function = trace_cache.kept(start.program, "key", lambda *_: SimpleResult("product", "sum"))

  def call(_):
    slow.wait()
    return jax.tree.map(lambda y: y.tolist(), function(FIVE, {"a": jnp.float32(3)}))

  with ThreadPoolExecutor(4) as pool:
    assert [*pool.map(call, range(4))] == [SimpleResult((3 * FIVE).tolist(), FIVE.sum().tolist())] * 4
  assert len(start.traced) == 1


@pytest.mark.parametrize(
  "change",
  [
    lambda patch: patch.setattr(trace_cache, "metadata", SimpleNamespace(version=lambda name: "0")),
    lambda patch: patch.setattr(trace_cache, "sys", SimpleNamespace(version="another")),
    lambda patch: patch.setenv("XLA_FLAGS", os.environ.get("XLA_FLAGS", "") + " "),
    lambda patch: patch.setattr(devices, "describe", lambda: {"kind": "another"}),
    lambda patch: patch.setattr(devices, "concurrency", lambda: 97),
    lambda patch: patch.setattr(trace_cache, "cores", lambda: 97),
  ],
  ids=["libraries", "python", "flags", "devices", "concurrency", "cores"],
)
def test_other_libraries_flags_and_machines_have_entries_of_their_own(start, monkeypatch, change):
  assert [start.begin(), start.begin()] == [1, 0]
  with monkeypatch.context() as patch:
    change(patch)
    assert start.begin() == 1
  assert start.begin() == 0


@pytest.mark.parametrize("donate", [False, True])
def test_a_kept_program_reuses_the_memory_of_the_state_where_it_may(start, donate):
  state = devices.replicate(jnp.arange(7.0))
  kept = trace_cache.kept(lambda state, other: state + other, "key", lambda *_: "sum", donate_state=donate)
  assert kept(state, jnp.float32(3)).tolist() == [3 + i for i in range(7)]
  assert state.is_deleted() == donate


def test_a_number_that_tracing_gives_is_kept(tmp_path, monkeypatch):
  monkeypatch.setattr(trace_cache, "_UNCHANGED_SINCE", float("inf"))
  monkeypatch.setattr(trace_cache, "_folder", tmp_path / "traced")
  tmp_path.joinpath("traced").mkdir()
  assert trace_cache.kept_number(lambda: 97, "a") == 97
  assert trace_cache.kept_number(lambda: pytest.fail("it was kept"), "a") == 97
  assert trace_cache.kept_number(lambda: 101, "b") == 101
