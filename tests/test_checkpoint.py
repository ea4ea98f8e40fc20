"""Checkpoints: which are kept, and that what is restored is what was saved."""

import dataclasses

import jax
import numpy as np
import pytest
from etils import epath

from transformer_jax import checkpoint, config
from transformer_jax.config import Config, DataConfig, ModelConfig, TrainConfig
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.errors import InputError
from transformer_jax.training.step import init_state

CONFIG = Config(
  data=DataConfig(row_length=16),
  model=ModelConfig(vocab_size=31, num_layers=1, d_model=6, d_ff=7, num_heads=2),
  train=TrainConfig(batch_tokens=64),
)


@pytest.fixture(scope="module")
def state():
  return jax.device_get(init_state(CONFIG))


def at_step(state, step):
  return state.replace(step=np.int32(step))


def steps_in(workdir):
  return sorted(int(path.name) for path in (workdir / "checkpoints").iterdir() if path.name.isdigit())


def test_the_last_and_the_best_are_kept_over_restarts(state, tmp_path):
  losses = {1: 3.0, 2: 1.0, 3: 2.0, 4: None, 5: 1.5}
  for part in ([1, 2, 3], [4, 5]):
    checkpoints = checkpoint.Checkpoints(epath.Path(tmp_path), keep=2)
    for step in part:
      checkpoints.save(at_step(state, step), losses[step])
    checkpoints.wait()
    checkpoints.close()
  assert steps_in(tmp_path) == [2, 4, 5]


def test_what_is_restored_is_what_was_saved(state, tmp_path):
  checkpoints = checkpoint.Checkpoints(epath.Path(tmp_path), keep=2)
  assert checkpoints.restore(CONFIG) is None
  checkpoints.save(at_step(state, 3), None)
  checkpoints.wait()
  restored = checkpoints.restore(CONFIG)
  assert int(restored.step) == 3
  assert all(len(x.sharding.device_set) == jax.local_device_count() for x in jax.tree.leaves(restored))
  jax.tree.map(np.testing.assert_array_equal, restored, at_step(state, 3))
  checkpoints.close()


def test_a_moving_average_is_an_item_of_its_own_and_the_one_to_decode_with(state, tmp_path):
  config = dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, ema_decay=0.9))
  average = jax.tree.map(lambda x: x + 1, state.params)
  found = {}
  for name, saved, its_config in (("off", state, CONFIG), ("on", state.replace(average=average), config)):
    folder = epath.Path(tmp_path / name)
    checkpoint.make_folder(folder, "--workdir")
    checkpoint.begin_run(folder, its_config, Tokenizer.learn(["a b c " * 7], 265), [])
    checkpoints = checkpoint.Checkpoints(folder, keep=2)
    checkpoints.save(at_step(saved, 3), None)
    checkpoints.wait()
    jax.tree.map(np.testing.assert_array_equal, checkpoints.restore(its_config), at_step(saved, 3))
    checkpoints.close()
    found[name] = {path.name for path in (folder / "checkpoints" / "3").iterdir() if path.is_dir()}
    _, _, params = checkpoint.load_for_decoding(folder)
    jax.tree.map(np.testing.assert_array_equal, params, saved.params_for_decoding)
  assert found["on"] - found["off"] == {"average"} and found["off"] >= {"params", "optimizer"}


def test_a_half_written_checkpoint_is_not_used(state, tmp_path):
  checkpoints = checkpoint.Checkpoints(epath.Path(tmp_path), keep=2)
  checkpoints.save(at_step(state, 3), None)
  checkpoints.wait()
  checkpoints.close()
  (tmp_path / "checkpoints" / "4.orbax-checkpoint-tmp").mkdir()
  assert int(checkpoint.Checkpoints(epath.Path(tmp_path), keep=2).restore(CONFIG).step) == 3


def test_files_are_replaced_as_a_whole(tmp_path):
  path = tmp_path / "file"
  checkpoint.write_atomically(path, "one")
  checkpoint.write_atomically(path, "two")
  assert path.read_text() == "two"
  assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("text", ["", "{", '{"modle": {}}', '{"model": {"d_model": "wide"}}', "[]"])
def test_a_malformed_config_is_one_sentence(tmp_path, text):
  (tmp_path / checkpoint.CONFIG).write_text(text)
  with pytest.raises(InputError) as raised:
    checkpoint.read_config(epath.Path(tmp_path))
  assert "\n" not in str(raised.value)
  assert "config" in str(raised.value)


def test_free_keys_may_change_between_two_parts_of_a_run(tmp_path):
  workdir = epath.Path(tmp_path)
  assert not checkpoint.check_run(workdir, CONFIG)
  (workdir / checkpoint.CONFIG).write_text(config.to_json(CONFIG))
  values = config.to_dict(CONFIG)
  values["train"]["steps"] = 7
  values["decode"]["beam_size"] = 2
  assert checkpoint.check_run(workdir, config.from_dict(values))
  values["train"]["seed"] = 1
  with pytest.raises(InputError, match=r"config\.train\.seed is 1, but the run in .* was begun with 0"):
    checkpoint.check_run(workdir, config.from_dict(values))
