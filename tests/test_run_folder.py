"""What makes a folder that of a run, and where it may be."""

import pytest
from etils import epath

from transformer_jax import run_folder
from transformer_jax.config import Config, TrainConfig
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.errors import InputError


def test_checkpoints_of_a_run_without_its_config_are_not_taken_over(tmp_path):
  (tmp_path / "run" / "checkpoints").mkdir(parents=True)
  assert not run_folder.check_run(epath.Path(tmp_path / "run"), Config())
  (tmp_path / "run" / "checkpoints" / "2").mkdir()
  with pytest.raises(
    InputError, match=r"has checkpoints but no config\.json.*: copy it back, or use another --workdir"
  ):
    run_folder.check_run(epath.Path(tmp_path / "run"), Config())
  assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["checkpoints"]


def test_what_is_asked_of_new_runs_is_not_asked_of_old_ones(tmp_path):
  folder, config = epath.Path(tmp_path / "run"), Config(train=TrainConfig(seed=2**32))
  with pytest.raises(InputError, match=r"config\.train\.seed is 4294967296"):
    run_folder.check_run(folder, config)
  run_folder.begin_run(folder, config, Tokenizer.learn(["abc ab"] * 5, 265), [])
  (folder / "checkpoints" / "2").mkdir(parents=True)
  assert run_folder.check_run(folder, config)


def test_home_is_where_the_user_means_it(monkeypatch, tmp_path):
  monkeypatch.setenv("HOME", str(tmp_path))
  assert run_folder.folder_of("~/runs/x") == epath.Path(tmp_path / "runs" / "x")
  monkeypatch.setattr(run_folder, "require_reachable", lambda path: None)
  assert run_folder.folder_of("gs://bucket/~x") == epath.Path("gs://bucket/~x")


def test_a_bucket_that_cannot_be_asked_is_one_sentence(monkeypatch):
  def exists(path):
    raise ImportError("no library for gs://\nand more")

  monkeypatch.setattr(type(epath.Path("gs://bucket")), "exists", exists)
  with pytest.raises(InputError, match=r"cannot reach gs://bucket/run: no library for gs://; for gs:// install etils"):
    run_folder.folder_of("gs://bucket/run")
