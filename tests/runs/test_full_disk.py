"""A full disk: one sentence, and what was there before is untouched.

A limit on the size of files takes the disk's place, so that no file system has to be mounted; `benchmarks/full_disk.py`
mounts real ones.
"""

import gc
import json
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import jax
import numpy as np
import pytest
from etils import epath

from benchmarks.curves import read_points
from transformer_jax.config import Config, Corpus, DataConfig, TrainConfig
from transformer_jax.data import pipeline
from transformer_jax.data.packed_ahead import BatchesPackedAhead
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.row_cache import PackedRows
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.model.config import ModelConfig
from transformer_jax.runs import checkpoint, run_folder
from transformer_jax.runtime.errors import RunError
from transformer_jax.runtime.files import write_atomically
from transformer_jax.tasks.translation import TASK
from transformer_jax.trainer.curves import Curves
from transformer_jax.trainer.metrics import FILE, MetricsAccumulator, MetricsLog
from transformer_jax.training.step import abstract_state, init_state

CONFIG = Config(
  data=DataConfig(row_length=16),
  model=ModelConfig(vocab_size=31, num_layers=1, d_model=6, d_ff=7, num_heads=2),
  train=TrainConfig(batch_tokens=64),
)


@contextmanager
def files_end_at(size: int):
  """No file of this process can be written beyond this number of bytes."""
  before = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
  try:
    yield
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def tokenizer():
  return SentencePieceTokenizer.learn(["a b c " * 7], 265)


# The file that fails is one of orbax' own, the description of an array, or the array itself.
@pytest.mark.long
@pytest.mark.parametrize("size", [100, 300, 1500])
def test_of_a_checkpoint(tmp_path, capfd, size):
  state = jax.device_get(init_state(CONFIG, TASK))
  checkpoints = checkpoint.Checkpoints(epath.Path(tmp_path), keep=2)
  checkpoints.save(state.replace(step=np.int32(3)), None)
  checkpoints.wait()
  message = "could not be written: File too large; that of step 3 is whole: the same command resumes from it"
  with pytest.raises(RunError, match=message), files_end_at(size):
    checkpoints.save(state.replace(step=np.int32(5)), None)
    checkpoints.wait()
  gc.collect()
  assert "Event loop is closed" not in capfd.readouterr().err
  again = checkpoint.Checkpoints(epath.Path(tmp_path), keep=2)
  jax.tree.map(
    np.testing.assert_array_equal,
    again.restore(abstract_state(CONFIG, TASK)).state,
    state.replace(step=np.int32(3)),
  )
  again.save(state.replace(step=np.int32(5)), None)
  again.wait()
  assert int(again.restore(abstract_state(CONFIG, TASK)).state.step) == 5
  again.close()


def test_of_metrics(tmp_path):
  log = MetricsLog(epath.Path(tmp_path), 0, MetricsAccumulator())
  log.write(1, "train", {"loss": 1.0})
  before = (tmp_path / FILE).read_bytes()
  with (
    pytest.raises(RunError, match=r"cannot write .*metrics\.jsonl: .* same command again"),
    files_end_at(len(before)),
  ):
    log.write(2, "train", {"loss": 2.0})
  assert (tmp_path / FILE).read_bytes() == before
  log.close()


def test_of_curves(tmp_path):
  curves = Curves(epath.Path(tmp_path), 0)
  curves.add(1, "train", {"loss": 1.0})
  curves.flush()
  with pytest.raises(RunError, match=f"cannot write {tmp_path}"), files_end_at(100):
    for step in range(2, 10):
      curves.add(step, "train", {"loss": 1.0})
    curves.flush()
  assert read_points(tmp_path)["train/loss"][0] == (1, 1.0)


def test_of_packed_rows(tmp_path, tokenizer):
  for language in ("en", "de"):
    (tmp_path / f"text.{language}").write_text("a b c\n" * 100)
  data = DataConfig(corpus=Corpus.TEXT, train=str(tmp_path / "text"), row_length=16, cache_dir=str(tmp_path / "cache"))
  with pytest.raises(RunError, match=r"cannot write .*cache"), files_end_at(500):
    pipeline.packed_rows(data, data.train, tokenizer)
  assert not [path for path in (tmp_path / "cache" / "rows").iterdir() if path.is_dir()]
  assert pipeline.packed_rows(data, data.train, tokenizer).report.found["pairs"] == 100


def test_of_the_vocabulary(tmp_path, tokenizer):
  folder, file = epath.Path(tmp_path), tmp_path / "tokenizer.model"
  run_folder.begin_run(folder, CONFIG, tokenizer, [])
  other = SentencePieceTokenizer.learn(["d e f " * 7], 265)
  with pytest.raises(RunError, match=f"cannot write {file}"), files_end_at(1000):  # more than the digests have
    run_folder.begin_run(folder, CONFIG, other, [])
  assert file.read_bytes() == tokenizer.to_bytes() != other.to_bytes()


def test_of_what_is_replaced_as_a_whole(tmp_path):
  path = tmp_path / "file"
  write_atomically(path, b"one")
  with pytest.raises(RunError, match=f"cannot write {path}"), files_end_at(100):
    write_atomically(path, b"two" * 100)
  assert path.read_text() == "one" and [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.slow
def test_of_whatever_is_first_on_a_real_disk(tmp_path):
  (tmp_path / "disk").mkdir()
  mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path / "disk")]
  if subprocess.run(mount, capture_output=True).returncode:
    pytest.skip("mounting a file system is not permitted here")
  subprocess.run(["umount", str(tmp_path / "disk")], check=True)
  program = Path(__file__).parents[2] / "benchmarks" / "full_disk.py"
  subprocess.run([sys.executable, str(program), "--sizes=5", f"--json={tmp_path / 'full_disk.json'}"], check=True)
  outcomes = json.loads((tmp_path / "full_disk.json").read_text())["outcomes"]
  assert [each["status"] for each in outcomes].count(1) >= 2


def test_of_rows_that_are_packed_ahead(tmp_path):
  none = PackedRows(np.zeros((0, 4, 3), np.uint16), PackingReport(), "")
  batches = BatchesPackedAhead(lambda part: [np.zeros((900, 4, 3), np.uint16)], tmp_path, none, 5, 7)
  with pytest.raises(RunError, match=f"cannot write {tmp_path}: File too large"), files_end_at(500):
    batches[0]
  batches.close()
