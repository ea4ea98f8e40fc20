"""`prepare` with text and folder in a bucket (`pip install '.[test,beam,buckets]'`)."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.buckets.test_buckets import UPLOAD, environment
from tests.example_run import write_corpus

pytest.importorskip("apache_beam")
__all__ = ["environment"]  # the fixture

DOWNLOAD = """
import sys
from etils import epath
for path in epath.Path("gs://bucket/prepared").iterdir():
  (epath.Path(sys.argv[1]) / path.name).write_bytes(path.read_bytes())
"""


def prepare(environment, text: str, folder: str) -> None:
  keys = {"data.train": text, "data.row_length": 16, "model.vocab_size": 290}
  flags = [*(f"--config.{key}={value}" for key, value in keys.items()), "--workers=2", "--part=50"]
  command = [sys.executable, "-m", "transformer_jax", "prepare", "--config=text", *flags, f"--output={folder}"]
  done = subprocess.run(command, env=environment, capture_output=True, text=True)
  assert done.returncode == 0, done.stderr


def contents(folder: Path) -> dict[str, bytes]:
  return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
def test_it_makes_the_same_bytes_as_on_disk(environment, tmp_path):
  write_corpus(tmp_path)
  sides = [str(tmp_path / f"text.{language}") for language in ("en", "de")]
  subprocess.run([sys.executable, "-c", UPLOAD, *sides], check=True, env=environment)
  prepare(environment, str(tmp_path / "text"), str(tmp_path / "disk"))
  prepare(environment, "gs://bucket/text", "gs://bucket/prepared")
  (tmp_path / "copy").mkdir()
  subprocess.run([sys.executable, "-c", DOWNLOAD, str(tmp_path / "copy")], check=True, env=environment)
  assert contents(tmp_path / "copy") == contents(tmp_path / "disk") and len(contents(tmp_path / "disk")) == 7
