"""Locks on folders: one process trains in a run folder, and training deletes no checkpoint that somebody reads.

A lock ends with the process that holds it, however that ends. It is on the folder itself (`flock`): nothing is written,
so that a stranger's folder may be read-only. In a bucket, and where the file system has no locks, there is none.
The library filelock has no such lock: its shared ones are kept in a database that every reader writes.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator

from etils import epath

from transformer_jax.runs.run_folder import make_folder
from transformer_jax.runtime import devices, hosts
from transformer_jax.runtime.errors import InputError


@contextlib.contextmanager
def exclusive_lock(workdir: epath.Path) -> Iterator[None]:
  """Keeps other processes from training in the same run folder. Makes the folder, and removes it if it stays empty.

  Raises:
    InputError: another process trains there, or the folder cannot be written.
  """
  with hosts.collective_errors():
    is_new = "://" not in os.fspath(workdir) and not workdir.exists()
    lock = _lock_to_train(workdir) if devices.is_main_host() else None
  try:
    with _closed_at_the_end(lock):
      yield
  finally:
    if is_new and lock is not None:
      with contextlib.suppress(OSError):  # it is not empty
        os.rmdir(workdir)


def _lock_to_train(workdir: epath.Path) -> int | None:
  if "://" in os.fspath(workdir):
    return None
  make_folder(workdir, "--workdir")
  try:
    return _locked(workdir, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError as error:
    raise InputError(f"another process trains in {workdir}: wait for its end, or use another --workdir") from error


@contextlib.contextmanager
def reading(folder: epath.Path) -> Iterator[None]:
  """Marks the folder as being read until the body ends (see `is_read`); several processes may read it at a time."""
  with _closed_at_the_end(_locked(folder, fcntl.LOCK_SH)):
    yield


def is_read(folder: epath.Path) -> bool:
  """Whether a process reads the folder, inside `reading`."""
  try:
    lock = _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError:
    return True
  with _closed_at_the_end(lock):
    return False


def _locked(folder: epath.Path, how: int) -> int | None:
  """An open folder that holds the lock; None where there are no locks.

  Raises:
    BlockingIOError: somebody else holds one, and `how` says not to wait.
  """
  if "://" in os.fspath(folder):
    return None
  try:
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
  except OSError:
    return None
  try:
    fcntl.flock(lock, how)
  except BlockingIOError:
    os.close(lock)
    raise
  except OSError:
    os.close(lock)
    return None
  return lock


@contextlib.contextmanager
def _closed_at_the_end(lock: int | None) -> Iterator[None]:
  try:
    yield
  finally:
    if lock is not None:
      os.close(lock)
