"""Who reads a run's checkpoints keeps training from deleting them meanwhile, by a lock on their folder.

The lock ends with the process that holds it. Where the file system has no locks, or in a bucket, there is none.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator

from etils import epath


@contextlib.contextmanager
def reading(folder: epath.Path) -> Iterator[None]:
  """Until the body ends, `is_read` says so."""
  lock = _locked(folder, fcntl.LOCK_SH)
  try:
    yield
  finally:
    if lock is not None:
      os.close(lock)


def is_read(folder: epath.Path) -> bool:
  """Whether anybody is in the body of `reading` the same folder."""
  try:
    lock = _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError:
    return True
  if lock is not None:
    os.close(lock)
  return False


def _locked(folder: epath.Path, how: int) -> int | None:
  """An open file that holds the lock; None where there are no locks."""
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
