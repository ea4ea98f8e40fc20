"""`prepare` by Apache Beam's own runner in two processes, which may be killed.

The packages need an environment of their own (`pip install '.[test,beam]'`).
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from etils import epath

from tests.example_run import write_corpus
from tests.prepared_folder import prepare, prepared, text
from transformer_jax.data import manifest, pipeline
from transformer_jax.data.cleaning import Rules

pytest.importorskip("apache_beam")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def start(folder: Path, *flags: str) -> subprocess.Popen:
  """The command, for the text in `folder`, in its working directory, from which nothing is imported."""
  keys = {"data.train": "text", "data.row_length": 16, "model.vocab_size": 290}
  (folder / "apache_beam.py").write_text("raise SystemExit('imported from the current folder')")
  command = [sys.executable, "-P", "-m", "transformer_jax", "prepare", f"--config={ROOT}/configs/text.py"]
  return subprocess.Popen(
    [*command, *(f"--config.{key}={value}" for key, value in keys.items()), "--workers=2", "--output=beam", *flags],
    cwd=folder,
    env={name: value for name, value in os.environ.items() if name != "XLA_FLAGS"},
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )


def run(folder: Path, *flags: str) -> tuple[int, str]:
  """Its exit status, and what it says but for progress."""
  process = start(folder, *flags)
  out, error = process.communicate(timeout=300)
  assert out == ""
  return process.returncode, "\n".join(line for line in error.splitlines() if " shard" not in line)


def assert_same_folders(one: Path, other: Path) -> None:
  assert {path.name: path.read_bytes() for path in one.iterdir()} == {
    path.name: path.read_bytes() for path in other.iterdir()
  }


@pytest.mark.parametrize("duplicates", [None, "sources"])
def test_two_processes_make_the_same_bytes_as_one_loop(tmp_path, duplicates):
  write_corpus(tmp_path)
  flags = ["--part=20", "--min-length=2", *(["--duplicates", duplicates] if duplicates else [])]
  status, said = run(tmp_path, *flags)
  assert status == 0, said
  assert "left out: fewer than 2 words" in said and "pairs skipped, longer than 16 tokens" in said
  assert "Traceback" not in said and "WARNING" not in said
  data = text(str(tmp_path / "text"))
  prepare(data, tmp_path / "loop", 20, Rules(min_length=2), duplicates)
  assert_same_folders(tmp_path / "beam", tmp_path / "loop")


def test_mistakes_are_one_sentence(tmp_path):
  write_corpus(tmp_path)
  content = (tmp_path / "text.de").read_bytes().split(b"\n")
  (tmp_path / "text.de").write_bytes(b"\n".join([*content[:150], b"\xe9", *content[151:]]))
  flags = ["--part=20", f"--config.data.tokenizer={tokenizer_in(tmp_path)}"]
  status, said = run(tmp_path, *flags)
  assert status == 2
  assert said.splitlines()[-1].startswith("transformer-jax: error: text.de, line 151: byte 1 of the line is not valid")
  assert "Traceback" not in said
  assert not (tmp_path / "beam" / "manifest.json").exists()


def tokenizer_in(folder: Path) -> Path:
  (folder / "other").mkdir()
  tokenizer = pipeline.learn_tokenizer(text(write_corpus(folder / "other")), 290)
  (folder / "tokenizer.model").write_bytes(tokenizer.to_bytes())
  return folder / "tokenizer.model"


@pytest.fixture
def large(tmp_path):
  """A text of many parts."""
  write_corpus(tmp_path)
  for language in ("en", "de"):
    path = tmp_path / f"text.{language}"
    path.write_text(path.read_text() * 200)
  return tmp_path


def files_in(folder: Path) -> list[Path]:
  return sorted(path for path in folder.glob("*") if manifest.SHARD.fullmatch(path.name))


def descendants(process: int) -> list[int]:
  found = [process]
  for number in found:
    for path in Path(f"/proc/{number}/task").glob("*/children"):
      with suppress(OSError):  # the thread has ended meanwhile
        found += map(int, path.read_text().split())
  return found[1:]


def workers_at_work(process: subprocess.Popen, folder: Path) -> list[int]:
  """Both processes of a pipeline that has written some files."""
  wait(lambda: (len(files_in(folder)) >= 3 and len(descendants(process.pid)) == 2) or process.poll() is not None)
  return descendants(process.pid)


def wait(condition: Callable[[], object]) -> None:
  limit = time.monotonic() + 200
  while not condition():
    assert time.monotonic() < limit
    time.sleep(0.02)


def is_alive(process: int) -> bool:
  try:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
  except OSError:
    return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_killed_pipeline_leaves_no_half_file(large, number):
  flags = ["--part=500"]
  process = start(large, *flags)
  workers = workers_at_work(process, large / "beam")
  process.send_signal(number)
  process.communicate(timeout=100)
  assert process.returncode == -number and len(workers) == 2
  wait(lambda: not any(map(is_alive, workers)))
  left = {path.name: path.read_bytes() for path in files_in(large / "beam")}
  data = prepared(text(str(large / "text")), large / "beam")
  with pytest.raises(ValueError, match=r"has no manifest\.json: it was not prepared to its end"):
    pipeline.learn_tokenizer(data, 290)
  assert run(large, *flags)[0] == 0
  whole = {path.name: path.read_bytes() for path in files_in(large / "beam")}
  assert len(left) >= 3 and left.items() <= whole.items() and len(whole) == 85
  assert {path.name for path in (large / "beam").iterdir()} == {*whole, "manifest.json", "tokenizer.model"}
  assert [shard.name for shard in manifest.read(epath.Path(large / "beam")).shards] == sorted(whole)


def test_a_killed_process_ends_the_pipeline(large):
  process = start(large, "--part=500")
  os.kill(workers_at_work(process, large / "beam")[0], signal.SIGKILL)
  _, said = process.communicate(timeout=100)
  assert process.returncode == 1
  last = said.splitlines()[-1]
  assert last.startswith("transformer-jax: error: ") and last.endswith("give the command again with fewer --workers")
  assert not (large / "beam" / "manifest.json").exists()


def test_a_folder_that_cannot_be_made_is_told_before_the_work_begins(tmp_path):
  write_corpus(tmp_path)
  (tmp_path / "beam").write_text("")
  status, said = run(tmp_path)
  assert status == 2 and "beam cannot be written: File exists; choose another --output" in said
