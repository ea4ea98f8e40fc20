"""Work in other processes gives what `map` gives, whatever happens to them, and leaves none of them behind."""

import operator
import os
import signal
import subprocess
import sys
import textwrap
import time
import types
from pathlib import Path

import pytest

from transformer_jax.runtime import workers
from transformer_jax.runtime.workers import Workers

PROCESS = "__import__('os').getpid()"


@pytest.fixture(autouse=True)
def _one_item_alone(monkeypatch):
  monkeypatch.setattr(workers, "_ALONE", 1)


def is_there(process: int) -> bool:
  """Whether a process has not ended; the first process of a container may ask nobody how it ended."""
  status = Path(f"/proc/{process}/stat")
  try:
    os.kill(process, 0)
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
  except (ProcessLookupError, FileNotFoundError):
    return False


def test_results_are_in_order_and_of_other_processes():
  with Workers(2) as some:
    assert list(some.map(operator.neg, range(30))) == [-i for i in range(30)]
    first, *others = some.map(eval, 20 * [PROCESS])
    assert first == os.getpid() and first not in others and len(set(others)) <= 2
    # One map may read from another, as packing does from encoding.
    assert list(some.map(operator.neg, some.map(abs, range(-9, 9)))) == [-abs(i) for i in range(-9, 9)]
  assert not any(map(is_there, others))


def test_items_are_read_a_few_ahead():
  read = []
  with Workers(2) as some:
    results = some.map(operator.neg, (read.append(i) or i for i in range(100)))
    assert next(results) == 0 and len(read) == 1
    assert next(results) == -1 and len(read) < 10
  assert len(read) < 10


@pytest.mark.parametrize("count", [1, 2])
def test_errors_come_after_the_items_before_them(count):
  def items(end):
    yield from map(str, range(5))
    yield end
    raise OSError("no more items")

  for end, error in (("1 / 0", ZeroDivisionError), ("5", OSError)):
    found = []
    with pytest.raises(error), Workers(count) as some:
      for result in some.map(eval, items(end)):
        found.append(result)
    assert found == [0, 1, 2, 3, 4] + [5] * (error is OSError)


def test_work_of_a_killed_process_is_done_here():
  with Workers(2) as some:
    results = some.map(eval, [*5 * [PROCESS], *map(str, range(40))])
    for process in {next(results) for _ in range(5)} - {os.getpid()}:
      os.kill(process, signal.SIGKILL)
    assert list(results) == list(range(40))


def test_what_another_process_cannot_have_is_done_here():
  module = types.ModuleType("of_this_process_alone")
  exec("def double(x): return 2 * x", module.__dict__)
  sys.modules["of_this_process_alone"] = module
  try:
    with Workers(2) as some:
      assert list(some.map(lambda x: 2 * x, range(9))) == list(some.map(module.double, range(9)))
      items = [lambda i=i: i for i in range(9)]
      assert [item() for item in some.map(_same, items)] == list(range(9))
  finally:
    del sys.modules["of_this_process_alone"]


def _same(item):
  return item


def test_without_processes_the_work_is_done_here(monkeypatch):
  monkeypatch.setattr(sys, "executable", "")
  with Workers(2) as some:
    assert list(some.map(operator.neg, range(9))) == [-i for i in range(9)]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_outlives_the_one_that_started_it(number):
  """A script without a guard for its main part, which writes the processes and is ended while they work."""
  script = f"""
    import signal, time
    from transformer_jax.runtime import workers
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a program in the background ignores it
    workers._ALONE = 0
    with workers.Workers(2) as some:
      for process in some.map(eval, 5 * ["{PROCESS}"]):
        print(process, flush=True)
      print("", flush=True)
      list(some.map(time.sleep, 1000 * [0.01]))
  """
  command = [sys.executable, "-c", textwrap.dedent(script)]
  with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
    assert process.stdout and process.stderr
    others = {int(line) for line in iter(process.stdout.readline, "\n")}
    assert others and process.pid not in others
    process.send_signal(number)
    said = process.stderr.read()  # it ends when nobody is there to write
  assert process.returncode == -number
  assert "KeyboardInterrupt" in said if number == signal.SIGINT else said == ""
  end = time.monotonic() + 30
  while any(map(is_there, others)):
    assert time.monotonic() < end
    time.sleep(0.01)


def test_ctrl_c_in_a_terminal_does_not_reach_the_other_processes():
  with Workers(2) as some:
    here, *others = some.map(eval, 9 * ["__import__('os').getpgrp()"])
  assert here == os.getpgrp() and here not in others
