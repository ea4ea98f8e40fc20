"""benchmarks/children.py with programs that stand for train.py."""

import contextlib
import signal
import subprocess
import sys
import time

import pytest

SAVES = """
import pathlib, signal, sys, time

def save(number, frame):
  time.sleep(0.5)
  pathlib.Path("saved").touch()
  sys.exit(128 + number)

signal.signal(signal.SIGTERM, save)
pathlib.Path("begun").touch()
time.sleep(60)
"""
CALL = "import children, pathlib; children.ROOT = pathlib.Path(); children.end_children(); children.train(['--flag'])"


@pytest.fixture
def start(program, tmp_path):
  """Starts a program that calls `children.train` with this content of train.py."""
  path = program("children").__file__.rpartition("/")[0]

  def start(content):
    (tmp_path / "train.py").write_text(content)
    return subprocess.Popen(
      [sys.executable, "-c", CALL], cwd=tmp_path, env={"PYTHONPATH": path}, stderr=subprocess.PIPE, text=True
    )

  return start


@pytest.mark.parametrize(
  ("content", "status", "message"),
  [
    ("import sys; sys.exit(sys.argv[1:] != ['--flag'])", 0, ""),
    ("import sys; sys.exit(7)", 7, ""),
    ("import os; os.kill(os.getpid(), 9)", 1, "train.py was ended by SIGKILL: the same command resumes"),
  ],
)
def test_the_program_ends_as_its_child(start, content, status, message):
  with start(content) as called:
    _, error = called.communicate(timeout=60)
  assert called.returncode == status and error.startswith(message) and bool(error) == bool(message)


@pytest.mark.parametrize(("steps", "refused"), [(9, False), (7, True)])
def test_a_longer_run_is_not_taken_for_a_shorter_one(program, tmp_path, monkeypatch, steps, refused):
  children = program("children")
  monkeypatch.setattr(children, "ROOT", tmp_path)
  (tmp_path / "train.py").touch()
  run = tmp_path / "run"
  (run / "checkpoints" / "9").mkdir(parents=True)
  (run / "config.json").write_text(f'{{"train": {{"steps": {steps}}}}}')
  said = pytest.raises(SystemExit, match="run has made 9 updates, more than 7: choose other --runs")
  with said if refused else contextlib.nullcontext():
    children.train([f"--workdir={run}"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_the_child_has_saved(start, tmp_path, number):
  with start(SAVES) as called:
    while not (tmp_path / "begun").exists():
      assert called.poll() is None
      time.sleep(0.01)
    called.send_signal(number)
    _, error = called.communicate(timeout=60)
  assert (tmp_path / "saved").exists()
  assert (called.returncode, error) == (128 + number, "")
