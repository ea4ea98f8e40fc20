"""Several hosts do what one does."""

import dataclasses

import pytest
from etils import epath

from tests.hosts.processes import assert_equal_to_rounding, tiny, trained
from tests.prepared_folder import prepare
from transformer_jax.config import Document, Optimizer, Schedule
from transformer_jax.language.config import BERTConfig, ELMoConfig, GPTConfig
from transformer_jax.recurrent.config import LuongConfig
from transformer_jax.trainer import loop


@pytest.mark.long
def test_two_hosts_go_on_with_a_run_of_eight_devices(prefix, tmp_path):
  """Dropout is on; the other host has no run folder."""
  config = tiny(prefix, steps=4)
  loop.train(config, epath.Path(tmp_path / "whole"))
  loop.train(tiny(prefix, steps=2), epath.Path(tmp_path / "parts"))
  (_, _, log), (_, _, log_of_other) = trained(tmp_path, tmp_path / "parts", config, count=2)
  assert "resuming after step 2" in log and "'hosts': 2" in log
  assert log_of_other == ""
  assert_equal_to_rounding(tmp_path / "whole", tmp_path / "parts", config)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_several_hosts_do_what_one_does(prefix, tmp_path, count):
  """They share out the sentences to translate, too, and one of them prints the scores."""
  config = tiny(prefix, steps=10, translations=True)
  trained(tmp_path, tmp_path / "one", config)
  ends = trained(tmp_path, tmp_path / "several", config, count=count)
  assert_equal_to_rounding(tmp_path / "one", tmp_path / "several", config)
  [(_, scores, _)] = trained(tmp_path, tmp_path / "several", config)  # of the very same parameters
  assert [out for _, out, _ in ends] == [scores] + [""] * (count - 1)
  assert [bool(log) for _, _, log in ends] == [True] + [False] * (count - 1)


@pytest.mark.slow
def test_two_hosts_read_a_prepared_folder_as_one_does(prefix, tmp_path):
  config = tiny(prefix)
  data = prepare(config.data, tmp_path / "prepared")
  config = dataclasses.replace(config, data=data)
  trained(tmp_path, tmp_path / "one", config)
  trained(tmp_path, tmp_path / "two", config, count=2)
  assert_equal_to_rounding(tmp_path / "one", tmp_path / "two", config)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["luong", "gpt", "bert", "elmo"])
def test_two_hosts_train_the_other_models_too(prefix, tmp_path, model):
  config = tiny(prefix)
  sizes = {"vocab_size": 290, "num_layers": 1, "d_model": 8, "dropout": 0.1}
  blocks = {"d_ff": 16, "num_heads": 2, "max_positions": 16}
  models = {
    "luong": LuongConfig(**sizes, hidden_size=7),
    "gpt": GPTConfig(**sizes, **blocks),
    "bert": BERTConfig(**sizes, **blocks),
    "elmo": ELMoConfig(**sizes),
  }
  data = config.data
  if model != "luong":
    document = Document.FILE if model == "bert" else Document.LINE  # BERT reads two lines of a document
    data = dataclasses.replace(data, train=f"{prefix}.en", validation=f"{prefix}.de", document=document)
  config = dataclasses.replace(config, model=models[model], data=data)
  trained(tmp_path, tmp_path / "one", config)
  trained(tmp_path, tmp_path / "two", config, count=2)
  assert_equal_to_rounding(tmp_path / "one", tmp_path / "two", config)


RECIPES = {
  "random pieces": {"data": {"bpe_dropout": 0.2}},
  "shards": {"data": {"shard_pairs": 50}},
  "optimizer": {
    "train": {"optimizer": Optimizer.ADAMW, "weight_decay": 0.1, "schedule": Schedule.COSINE, "clip_norm": 0.1}
  },
  "R-Drop": {"train": {"r_drop": 5.0}},
  "layers": {"model": {"encoder_layers": 2}},
  "early stopping": {"train": {"patience": 1, "steps": 12}},
}


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_two_hosts_train_with_a_recipe(prefix, tmp_path, recipe):
  config = tiny(prefix, steps=24)
  changed = {part: dataclasses.replace(getattr(config, part), **keys) for part, keys in RECIPES[recipe].items()}
  config = dataclasses.replace(config, **changed)
  trained(tmp_path, tmp_path / "one", config)
  trained(tmp_path, tmp_path / "two", config, count=2)
  assert_equal_to_rounding(tmp_path / "one", tmp_path / "two", config)


@pytest.mark.slow
def test_two_hosts_train_many_languages_in_one_model(prefix, tmp_path):
  config = tiny(prefix)
  both = f"{prefix}:en+de"
  data = dataclasses.replace(config.data, train=both, validation=both, tags=True, temperature=5.0)
  config = dataclasses.replace(config, data=data)
  trained(tmp_path, tmp_path / "one", config)
  trained(tmp_path, tmp_path / "two", config, count=2)
  assert_equal_to_rounding(tmp_path / "one", tmp_path / "two", config)


@pytest.mark.slow
@pytest.mark.parametrize("parts", [[(1, 8), (1, 1), (1, 4)], [(1, 1), (2, 1), (1, 1)]], ids=["devices", "hosts"])
def test_their_numbers_may_change_between_the_parts_of_a_run(prefix, tmp_path, parts):
  count, devices = parts[0]
  trained(tmp_path, tmp_path / "whole", tiny(prefix), count=count, devices=devices)
  for steps, (count, devices) in zip((2, 4, 6), parts, strict=True):
    trained(tmp_path, tmp_path / "parts", tiny(prefix, steps=steps), count=count, devices=devices)
  assert_equal_to_rounding(tmp_path / "whole", tmp_path / "parts", tiny(prefix))
