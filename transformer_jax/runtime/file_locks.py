"""Locks between processes on open files and folders (`flock`); a lock ends with the process that holds it."""

import fcntl
from typing import IO


def lock(file: int | IO, *, shared: bool = False, wait: bool = True) -> bool:
  """Takes the lock, which lasts until the file is closed; false if the file system has no locks.

  Args:
    file: the open file, or its descriptor.
    shared: several processes may hold the lock if all of them take it as shared.
    wait: wait until other processes give the lock back.

  Raises:
    BlockingIOError: another process holds the lock, and `wait` is false.
  """
  how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
  try:
    fcntl.flock(file, how if wait else how | fcntl.LOCK_NB)
  except OSError as error:
    if isinstance(error, BlockingIOError) and not wait:
      raise
    return False
  return True
