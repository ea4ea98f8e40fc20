"""Locks on folders: one process writes a run folder, and training chooses none to delete while checkpoints are read.

A lock ends with the process that holds it, however that ends. It is on the folder itself: nothing is written, so that a
stranger's folder may be read-only. In a bucket, and where the file system has no locks, there is none. The library
filelock has no such lock: its shared ones are kept in a database that every reader writes.
"""

import contextlib
import os
from collections.abc import Iterator

from etils import epath

from transformer_jax.runs.run_folder import make_folder
from transformer_jax.runtime import devices, hosts
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.file_locks import lock


@contextlib.contextmanager
def exclusive_lock(workdir: epath.Path, flag: str = "--workdir") -> Iterator[None]:
  """Keeps other processes from writing the same run folder. Makes the folder, and removes it if it stays empty.

  Args:
    workdir: the run folder.
    flag: the one that chose it, for messages.

  Raises:
    InputError: another process writes there, or the folder cannot be written.
  """
  with contextlib.ExitStack() as held:  # which also ends if another host fails here
    with hosts.collective_errors():
      if devices.is_main_host():
        held.enter_context(exclusive_lock_of_one_process(workdir, flag))
    yield


def exclusive_lock_of_one_process(workdir: epath.Path, flag: str) -> contextlib.ExitStack:
  """`exclusive_lock` for a program that has no hosts, and begins to use no device; in a bucket there is no lock."""
  if "://" in os.fspath(workdir):
    return contextlib.ExitStack()
  while True:
    is_new = not workdir.exists()
    make_folder(workdir, flag)
    try:
      held = _locked(workdir, wait=False)
    except FileNotFoundError:
      continue  # the process that made the folder has removed it meanwhile
    except BlockingIOError as error:
      raise InputError(f"another process writes in {workdir}: wait for its end, or choose another {flag}") from error
    if is_new:
      held.callback(_remove_empty, workdir)  # it runs before the lock ends
    return held


def _remove_empty(workdir: epath.Path) -> None:
  with contextlib.suppress(OSError):  # it is not empty
    os.rmdir(workdir)


def reading(folder: epath.Path) -> contextlib.ExitStack:
  """Marks the folder as being read until the body ends (see `is_read`); several processes may read it at a time."""
  try:
    return _locked(folder, shared=True)
  except FileNotFoundError:
    return contextlib.ExitStack()


def is_read(folder: epath.Path) -> bool:
  """Whether a process reads the folder, inside `reading`."""
  try:
    with _locked(folder, wait=False):
      return False
  except FileNotFoundError:
    return False
  except BlockingIOError:
    return True


def _locked(folder: epath.Path, *, shared: bool = False, wait: bool = True) -> contextlib.ExitStack:
  """The lock on a folder, which ends with the body of `with`; where there are no locks, it is none.

  Raises:
    BlockingIOError: as `lock` does.
    FileNotFoundError: there is no such folder, or it was removed before it was locked.
  """
  with contextlib.ExitStack() as stack:
    if "://" not in os.fspath(folder):
      try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
      except FileNotFoundError:
        raise
      except OSError:
        return stack.pop_all()
      stack.callback(os.close, opened)
      lock(opened, shared=shared, wait=wait)
      if not os.fstat(opened).st_nlink:  # it was removed between the two calls
        raise FileNotFoundError(folder)
    return stack.pop_all()
