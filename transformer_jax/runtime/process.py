"""Settings of this process, for programs to make at their start; a library leaves them alone."""

import gc
import os
import sys

_TUNABLES, _HUGE_PAGES = "GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"


def use_huge_pages() -> None:
  """Starts this program again with huge pages for malloc, where glibc has them.

  XLA allocates its buffers anew at each step on a CPU, and the kernel has to
  find and clear hundreds of megabytes for it: page by page of 4 KiB that is a
  large part of a small model's step. glibc reads the setting only at the start of
  a process, so the process replaces itself, with the same number, arguments and
  files; to be called first of all. Elsewhere than on Linux it does nothing, and
  a C library without the setting ignores it.
  """
  tunables = os.environ.get(_TUNABLES, "")
  if not sys.platform.startswith("linux") or "glibc.malloc.hugetlb" in tunables:
    return
  os.environ[_TUNABLES] = f"{tunables}:{_HUGE_PAGES}".lstrip(":")
  os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def raise_gc_threshold() -> None:
  """Lets Python look for unreachable cycles after 50,000 new objects, for its 700 or 2,000.

  To trace and to lower a step makes millions of objects that stay: Python's
  default goes through them again and again, up to a tenth of a start. What
  belongs to no cycle, as arrays do, is freed at once in any case.
  """
  gc.set_threshold(50_000, 20, 20)
