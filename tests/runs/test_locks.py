"""Locks: several may read, one may train, and no lock outlives its process."""

import errno
import os
import stat
import subprocess
import sys

import pytest
from etils import epath

from transformer_jax import train
from transformer_jax.config import Config
from transformer_jax.runs import locks
from transformer_jax.runtime import file_locks
from transformer_jax.runtime.errors import InputError

# As `flock` of util-linux, or any other program, takes the same lock.
HOLDER = """
import fcntl, os, sys, time

fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), getattr(fcntl, sys.argv[2]))
print("locked", flush=True)
time.sleep(1000)
"""


def held(folder, how):
  """A process that holds a lock on a folder."""
  process = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder), how], stdout=subprocess.PIPE)
  assert process.stdout is not None and process.stdout.readline() == b"locked\n"
  return process


def killed(process):
  process.kill()
  process.communicate()


def test_two_do_not_train_in_one_folder(tmp_path):
  workdir = epath.Path(tmp_path / "run")
  with locks.exclusive_lock(workdir):
    with pytest.raises(InputError, match=f"another process writes in {workdir}"), locks.exclusive_lock(workdir):
      pass
    with locks.exclusive_lock(epath.Path(tmp_path / "other")):
      pass
  with locks.exclusive_lock(workdir):
    pass


@pytest.mark.parametrize("opened", [False, True])
def test_a_folder_that_its_maker_removes_is_made_again(tmp_path, monkeypatch, opened):
  """Two processes start in one new folder; the first fails and removes it before or after the second opens it."""
  workdir, removed = epath.Path(tmp_path / "run"), []

  def remove(*_, **__):
    if not removed:
      removed.append(workdir)
      workdir.rmdir()

  if opened:
    monkeypatch.setattr(locks, "lock", lambda *args, lock=locks.lock, **how: (remove(), lock(*args, **how)))
  else:
    monkeypatch.setattr(locks, "make_folder", lambda *args, make=locks.make_folder: (make(*args), remove()))
  with locks.exclusive_lock(workdir):
    assert removed
    with pytest.raises(InputError, match="another process writes in"), locks.exclusive_lock(workdir):
      pass
  assert not workdir.exists()


def test_training_from_python_takes_the_lock_too(tmp_path):
  workdir = epath.Path(tmp_path / "run")
  with locks.exclusive_lock(workdir), pytest.raises(InputError, match=f"another process writes in {workdir}"):
    train(Config(), workdir)


def test_who_trains_is_known_until_the_process_is_killed(tmp_path):
  process = held(tmp_path, "LOCK_EX")
  with pytest.raises(InputError, match="another process writes in"), locks.exclusive_lock(epath.Path(tmp_path)):
    pass
  killed(process)
  with locks.exclusive_lock(epath.Path(tmp_path)):
    pass


def test_who_reads_is_known_until_the_last_one_ends(tmp_path):
  folder = epath.Path(tmp_path)
  assert not locks.is_read(folder)
  process = held(folder, "LOCK_SH")
  with locks.reading(folder), locks.reading(folder):
    assert locks.is_read(folder)
  assert locks.is_read(folder)
  killed(process)
  assert not locks.is_read(folder)


def test_nothing_is_written_where_somebody_reads(tmp_path):
  """Nor need it be permitted; root may write all the same."""
  tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
  before = os.stat(tmp_path).st_mtime_ns
  with locks.reading(epath.Path(tmp_path)):
    assert locks.is_read(epath.Path(tmp_path))
    assert os.listdir(tmp_path) == []
  assert os.stat(tmp_path).st_mtime_ns == before


@pytest.mark.parametrize("folder", ["gs://bucket/run/checkpoints", "/nowhere/checkpoints"])
def test_where_there_are_no_locks_nobody_is_kept_out(folder):
  with locks.reading(epath.Path(folder)):
    assert not locks.is_read(epath.Path(folder))


def test_a_new_folder_that_stays_empty_is_removed(tmp_path):
  old, new, used = (epath.Path(tmp_path / name) for name in ("old", "new", "used"))
  old.mkdir()
  for folder in (old, new, used):
    with pytest.raises(InputError), locks.exclusive_lock(folder):
      if folder == used:
        (folder / "file").write_text("kept")
      raise InputError("the text cannot be read")
  assert old.exists() and not new.exists() and (used / "file").exists()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_keeps_nobody_out(tmp_path, monkeypatch, number):
  def flock(*_):
    raise OSError(number, os.strerror(number))

  monkeypatch.setattr(file_locks.fcntl, "flock", flock)
  folder = epath.Path(tmp_path)
  with locks.exclusive_lock(folder), locks.exclusive_lock(folder), locks.reading(folder):
    assert not locks.is_read(folder)
  with open(tmp_path / "file", "w") as file:
    assert file_locks.lock(file) is False
