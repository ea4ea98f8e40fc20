"""Collections of garbage are rare, and still are made; as many files may be open as are needed; XLA's flags on GPUs;
signals."""

import gc
import os
import resource
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from transformer_jax import __main__
from transformer_jax.runtime import process
from transformer_jax.runtime.process import allow_open_files, handled, prefer_cublas, raise_gc_threshold


@pytest.mark.long
def test_new_objects_that_stay_are_seldom_gone_through_and_cycles_are_still_found():
  def collections_of(count):
    begun = []
    gc.callbacks.append(lambda phase, info: begun.append(phase) if phase == "start" else None)
    objects = [[] for _ in range(count)]
    gc.callbacks.pop()
    assert len(objects) == count
    return len(begun)

  before = gc.get_threshold()
  try:
    gc.set_threshold(700, 10, 10)  # Python's own
    gc.collect()
    assert collections_of(20_011) > 5
    raise_gc_threshold()
    gc.collect()
    assert collections_of(20_011) == 0
    assert collections_of(130_003) > 0
  finally:
    gc.set_threshold(*before)


def test_the_limit_of_open_files_is_raised_and_never_lowered():
  soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
  try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    allow_open_files(300)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (1324, hard)
    allow_open_files(3)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (1324, hard)
    if hard != resource.RLIM_INFINITY:
      allow_open_files(hard)
      assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
  finally:
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
  ("before", "exists", "after"),
  [
    (None, False, None),
    (None, True, "--xla_gpu_enable_triton_gemm=false"),
    ("--xla_dump_to=a", True, "--xla_dump_to=a --xla_gpu_enable_triton_gemm=false"),
    ("--xla_gpu_enable_triton_gemm=true", True, "--xla_gpu_enable_triton_gemm=true"),
    ("flags.txt", True, "flags.txt"),
  ],
)
def test_matmuls_are_cublas_on_an_nvidia_gpu_unless_the_user_says_otherwise(
  before, exists, after, tmp_path, monkeypatch
):
  file = tmp_path / "nvidiactl"
  if exists:
    file.touch()
  monkeypatch.setattr(process, "_NVIDIA", str(file))
  monkeypatch.setenv("XLA_FLAGS", before or "")
  prefer_cublas()
  assert os.environ["XLA_FLAGS"] == (after or "")


@pytest.mark.parametrize("exists", [True, False])
def test_programs_may_be_for_a_gpu_that_is_not_here(exists, tmp_path, monkeypatch):
  monkeypatch.setattr(process, "_NVIDIA", str(tmp_path if exists else tmp_path / "nvidiactl"))
  monkeypatch.setenv("XLA_FLAGS", "")
  prefer_cublas(here=False)
  assert os.environ["XLA_FLAGS"] == ""
  prefer_cublas(here=True)
  assert os.environ["XLA_FLAGS"] == "--xla_gpu_enable_triton_gemm=false"


@pytest.mark.long
def test_this_jaxs_compiler_knows_the_flag(tmp_path):
  (tmp_path / "nvidiactl").touch()
  code = f"""
from transformer_jax.runtime import process
process._NVIDIA = {str(tmp_path / "nvidiactl")!r}
process.prefer_cublas()
import jax
print(jax.numpy.arange(5).sum())
"""
  run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
  assert run.stdout == "10\n" and "nknown flag" not in run.stderr


WAITING = """
import atexit, sys, threading, time
from transformer_jax import __main__
threading.Thread(target=time.sleep, args=(600,), daemon={daemon}).start()
atexit.register(print, "left")
print("before")
__main__.use_huge_pages, __main__.main = lambda: None, lambda argv: {end}  # it would start the program again
sys.exit(__main__.program([]))
"""


@pytest.mark.parametrize(
  ("end", "daemon", "said"),
  [
    ("2", False, "before\nleft\n"),
    ("130", False, "before\n"),
    ("130", True, "before\n"),
    ("sys.exit(130)", False, "before\nleft\n"),
    ("sys.exit(143)", False, "before\nleft\n"),
  ],
)
def test_a_failure_does_not_wait_for_threads(end, daemon, said):
  """orbax leaves some that wait for five minutes.

  After a Ctrl-C in the work they may still compute, so nothing is taken away. A command that a signal ended in its own
  way calls `sys.exit`.
  """
  program, status = WAITING.format(end=end, daemon=daemon), int("".join(filter(str.isdigit, end)))
  done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
  assert (done.returncode, done.stdout) == (status, said)


def test_programs_compute_in_32_bits():
  """Even if the user's other programs do not, or the variable is wrong."""
  code = "from transformer_jax.__main__ import program\nprogram(['no-command'])\nimport jax\n"
  code += "print(jax.config.jax_enable_x64, jax.numpy.ones(1).dtype)"
  for value in ("1", "bogus"):
    environment = os.environ | {"JAX_ENABLE_X64": value}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["False float32"], done.stderr


def test_in_another_thread_signals_stay_as_they_are():
  """Python gives handlers to the main thread alone, and a training may run in another one."""
  before = signal.getsignal(signal.SIGUSR1)

  def inside():
    with handled(lambda number: None, signal.SIGUSR1):
      return signal.getsignal(signal.SIGUSR1)

  with ThreadPoolExecutor() as executor:
    assert executor.submit(inside).result() is before


def test_of_two_signals_the_first_is_handled_and_a_later_one_does_what_it_did_before():
  received = []
  numbers = signal.SIGUSR1, signal.SIGUSR2
  before = [signal.signal(number, lambda number, _: received.append(("before", number))) for number in numbers]
  outer = [signal.getsignal(number) for number in numbers]
  try:
    with handled(lambda number: received.append(("handled", number)), *numbers):
      signal.raise_signal(signal.SIGUSR2)
      signal.raise_signal(signal.SIGUSR1)
      signal.raise_signal(signal.SIGUSR2)
    assert [signal.getsignal(number) for number in numbers] == outer
    with handled(signal.SIG_DFL, *numbers):
      assert [signal.getsignal(number) for number in numbers] == [signal.SIG_DFL] * 2
    assert [signal.getsignal(number) for number in numbers] == outer
  finally:
    for number, handler in zip(numbers, before, strict=True):
      signal.signal(number, handler)
  assert received == [("handled", signal.SIGUSR2), ("before", signal.SIGUSR1), ("before", signal.SIGUSR2)]


def test_a_closed_terminal_that_says_so_twice_is_one_signal():
  received = []
  before = signal.signal(signal.SIGHUP, lambda *_: pytest.fail("the process would have ended"))
  own = signal.getsignal(signal.SIGHUP)
  try:
    with handled(received.append, signal.SIGTERM, signal.SIGHUP):
      signal.raise_signal(signal.SIGHUP)
      signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is own
  finally:
    signal.signal(signal.SIGHUP, before)
  assert received == [signal.SIGHUP]


def test_a_python_that_does_not_know_its_own_path_goes_on(monkeypatch):
  monkeypatch.setattr(sys, "executable", "")
  monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
  monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("there is nothing to start"))
  process.use_huge_pages()
  assert "GLIBC_TUNABLES" not in os.environ


def test_a_program_makes_its_settings_before_the_command(monkeypatch):
  made, names = [], ["use_huge_pages", "prefer_cublas", "forbid_64_bits", "raise_gc_threshold"]
  for name in names:
    monkeypatch.setattr(__main__, name, lambda name=name: made.append(name))
  monkeypatch.setattr(__main__, "main", lambda argv: made.append("main") or 0)
  assert __main__.program([]) == 0
  assert made[0] == "use_huge_pages" and sorted(made[:-1]) == sorted(names) and made[-1] == "main"


def test_a_program_starts_again_with_huge_pages_and_what_it_was_given(monkeypatch):
  started = []
  monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.check=3")
  monkeypatch.setattr(os, "execv", lambda *command: started.append(command))
  process.use_huge_pages()
  assert os.environ["GLIBC_TUNABLES"] == "glibc.malloc.check=3:glibc.malloc.hugetlb=1"
  process.use_huge_pages()  # the one that was started again
  assert started == [(sys.executable, [sys.executable, *sys.orig_argv[1:]])]


@pytest.mark.parametrize("number", [1, 7])
def test_ctrl_c_reaches_the_first_process_of_a_container_too(monkeypatch, number):
  """The kernel gives that one no signal whose action is the default."""
  before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a program in the background ignores it
  try:
    monkeypatch.setattr(os, "getpid", lambda: number)
    with process.ended_at_once_by_ctrl_c():
      expected = signal.default_int_handler if number == 1 else signal.SIG_DFL
      assert signal.getsignal(signal.SIGINT) is expected
  finally:
    signal.signal(signal.SIGINT, before)
