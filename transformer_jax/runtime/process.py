"""Settings of this process. A program makes them at its start; a library does not change them."""

import atexit
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from types import FrameType

_TUNABLES, _HUGE_PAGES = "GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"
_XLA, _TRITON = "XLA_FLAGS", "xla_gpu_enable_triton_gemm"
_NVIDIA = "/dev/nvidiactl"  # the driver's device file


def use_huge_pages() -> None:
  """Starts this program again with huge pages for malloc, if glibc supports them.

  On a CPU, XLA allocates its buffers again at each step, and the kernel must find
  and clear hundreds of megabytes. In pages of 4 KiB this is a large part of a
  small model's step. glibc reads the setting only at the start of a process. So
  the process replaces itself, with the same process number, arguments and open
  files; a program must call this function first. It does nothing on systems other
  than Linux, and a C library without the setting ignores it.
  """
  tunables = os.environ.get(_TUNABLES, "")
  if not sys.platform.startswith("linux") or "glibc.malloc.hugetlb" in tunables or not sys.executable:
    return  # Python does not always know its own path
  os.environ[_TUNABLES] = f"{tunables}:{_HUGE_PAGES}".lstrip(":")
  os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def prefer_cublas(*, here: bool | None = None) -> None:
  """Lets XLA compute matmuls on NVIDIA's GPUs by cuBLAS alone, if `XLA_FLAGS` does not say otherwise.

  XLA would also try kernels that it generates itself. It chooses some that are
  slower in the program than they were alone: with them a step of the paper's
  base model was slower on an H200. A program must call this function before
  JAX begins to use the devices. It does nothing where `XLA_FLAGS` names a file
  with flags.

  Args:
    here: whether programs are for such a GPU; None means whether there is one.
  """
  here = os.path.exists(_NVIDIA) if here is None else here
  flags = os.environ.get(_XLA, "").strip()
  is_file = flags and not flags.startswith("-")
  if here and _TRITON not in flags and not is_file:
    os.environ[_XLA] = f"{flags} --{_TRITON}=false".lstrip()


def forbid_64_bits() -> None:
  """Lets JAX compute in 32 bits whatever `JAX_ENABLE_X64` says: a model's types are those of its config.

  A program must call this function before it imports JAX.
  """
  os.environ.pop("JAX_ENABLE_X64", None)


def raise_gc_threshold() -> None:
  """Makes Python collect garbage after 50,000 new objects instead of 700 or 2,000.

  Tracing and lowering a step makes millions of objects that stay. With Python's
  default the garbage collector visits them again and again, for up to a tenth of
  a start. Objects outside of cycles, such as arrays, are freed at once anyway.
  """
  gc.set_threshold(50_000, 20, 20)


def leave_threads(status: int, *, interrupted: bool = False) -> int:
  """Returns the exit status; after a failure it ends the process if threads would keep that alive.

  orbax's threads wait five minutes for the folder of a checkpoint that could not
  be made. What `atexit` has registered is done, as at any end, but not if Ctrl-C
  has `interrupted` the work: threads, daemons among them, may still compute, and
  JAX would take their device away.
  """
  others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
  if status and any(interrupted or not thread.daemon for thread in others):
    if not interrupted:
      atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):
      with suppress(OSError, ValueError):  # it may be closed
        stream.flush()
    os._exit(status)
  return status


def allow_open_files(count: int) -> None:
  """Raises the limit of open files, as far as the system lets this process, so that `count` more can be open."""
  import resource  # not on every system

  wanted = count + 1024  # as many for all else
  soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
  if soft != resource.RLIM_INFINITY and soft < wanted:
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def cores() -> int:
  """The number of cores that this process may use."""
  return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def handled(handler: Callable[[int], object] | signal.Handlers, *numbers: signal.Signals) -> Iterator[None]:
  """Calls `handler` for the first of these signals in the body; later ones have their old effect, also in the body.

  But a second SIGHUP is ignored. An ignored signal stays ignored: a shell ignores Ctrl-C for background programs.
  `SIG_DFL` as a handler ends the process even while it computes outside of Python, where no function would be
  called. Only the main thread can have handlers; in another one this does nothing.
  """
  if threading.current_thread() is not threading.main_thread():
    yield
    return
  handlers = {number: signal.getsignal(number) for number in numbers}
  before = {number: its for number, its in handlers.items() if its is not signal.SIG_IGN}

  def restore() -> None:
    for number, its in before.items():
      signal.signal(number, its)

  def receive(number: int, frame: FrameType | None) -> None:
    restore()
    if number == signal.SIGHUP:  # a terminal that closes may send it twice: by the kernel and by the shell
      signal.signal(number, signal.SIG_IGN)
    if callable(handler):
      handler(number)

  for number in before:
    signal.signal(number, receive if callable(handler) else handler)
  try:
    yield
  finally:
    restore()


def ended_at_once_by_ctrl_c() -> AbstractContextManager[None]:
  """Lets Ctrl-C end the program without a traceback in the body.

  The first process of a container keeps Python's handler: the kernel gives it no signal that it does not handle.
  """
  return nullcontext() if os.getpid() == 1 else handled(signal.SIG_DFL, signal.SIGINT)


def termination_raises() -> AbstractContextManager[None]:
  """Lets the first SIGTERM or SIGHUP end the body by an exception, so that it removes its temporary files.

  The exit status is 128 and the signal's number.
  """
  return handled(lambda number: sys.exit(128 + number), signal.SIGTERM, signal.SIGHUP)
