import dataclasses
import enum
import importlib.util
import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from etils import epath

from transformer_jax import registry
from transformer_jax.commands.experiment import read_config
from transformer_jax.config import (
  Config,
  Corpus,
  DataConfig,
  DecodeConfig,
  EvaluateConfig,
  LengthPenalty,
  Optimizer,
  Schedule,
  TrainConfig,
  flags,
  serialization,
)
from transformer_jax.config.help_text import descriptions, help_text
from transformer_jax.model.config import Dtype, ModelConfig
from transformer_jax.recurrent.config import LuongConfig, Score, SequenceToSequenceConfig
from transformer_jax.runtime import untrusted
from transformer_jax.runtime.errors import InputError
from transformer_jax.training.optimizer import learning_rate

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "configs").glob("[!.]*.py"))


def test_json_gives_the_same_config_back():
  config = Config(
    data=DataConfig(corpus=Corpus.TEXT, train="a;b*2", row_length=64, max_length=50),
    model=ModelConfig(d_k=5, d_v=7, num_heads=3, dtype=Dtype.BFLOAT16, learned_positions=True),
    train=TrainConfig(peak_learning_rate=1e-3, batch_tokens=64),
    decode=DecodeConfig(penalty=LengthPenalty.FAIRSEQ),
    evaluate=EvaluateConfig(tokenize="none", lowercase=True),
  )
  text = serialization.to_json(config)
  assert text.endswith("}\n")
  assert serialization.from_dict(json.loads(text)) == config
  assert serialization.validated(config) == config and serialization.validated(config) is not config


def test_missing_keys_have_their_defaults():
  assert serialization.from_dict({}) == Config()
  assert serialization.from_dict({"model": {"d_model": 64}}) == Config(model=ModelConfig(d_model=64))


@pytest.mark.parametrize(
  ("values", "message"),
  [
    ({"nope": 1}, "config.nope is not a key; config has data, debug, decode, evaluate, model, train"),
    (
      {"model": {"layers": 1}},
      "config.model.layers is not a key (did you mean num_layers or encoder_layers?); `transformer-jax train --help` ",
    ),
    ({"model": 3}, "config.model is 3, but must be a group of keys"),
    ({"model": {"num_layers": 2.0}}, "config.model.num_layers is 2.0, but must be int"),
    ({"model": {"num_layers": True}}, "config.model.num_layers is True, but must be int"),
    ({"model": {"num_layers": None}}, "config.model.num_layers is None, but must be int"),
    ({"model": {"dropout": "0.1"}}, "config.model.dropout is '0.1', but must be float"),
    ({"model": {"pre_norm": 1}}, "config.model.pre_norm is 1, but must be bool"),
    ({"model": {"d_k": "x"}}, "config.model.d_k is 'x', but must be int or none"),
    ({"model": {"dtype": "float16"}}, "config.model.dtype is 'float16', but must be one of float32, bfloat16"),
    ({"data": {"corpus": "moon"}}, "config.data.corpus is 'moon', but must be one of numbers, text, tfds"),
    ({"data": {"train": 3}}, "config.data.train is 3, but must be str"),
    ({"train": {"keep": 10**19}}, "config.train.keep is 10000000000000000000, but must have at most 19 digits"),
  ],
)
def test_unknown_keys_and_wrong_types_are_named(values, message):
  with pytest.raises(InputError, match="^" + re.escape(message)):
    serialization.from_dict(values)


def test_a_long_value_is_not_repeated_as_a_whole():
  """As a stranger's config may have it."""
  with pytest.raises(
    InputError, match=r"config\.model\.labels is 'x+\.\.\.x+', but must be the different names of"
  ) as error:
    serialization.from_dict({"model": {"family": "bert-classifier", "labels": "x" * 5000}})
  assert len(str(error.value)) < 400


def test_the_longest_number_can_be_read_again(tmp_path):
  config = serialization.from_dict({"train": {"keep": 10**19 - 1}})
  (tmp_path / "config.json").write_text(serialization.to_json(config))
  assert serialization.from_dict(untrusted.read_json(epath.Path(tmp_path / "config.json"))) == config


@pytest.mark.parametrize("given", [0, np.float64(0)])
def test_an_integer_is_a_float_and_so_is_a_number_of_numpy(given):
  dropout = serialization.from_dict({"model": {"dropout": given}}).model.dropout
  assert dropout == 0.0 and type(dropout) is float


@pytest.mark.parametrize(
  ("group", "values"),
  [
    *[("model", {name: 0}) for name in ("vocab_size", "num_layers", "d_model", "d_ff", "num_heads", "max_positions")],
    ("model", {"d_k": 0}),
    ("model", {"d_v": -1}),
    ("model", {"source_vocab_size": 0}),
    ("model", {"source_vocab_size": 0, "family": "luong"}),
    *[("model", {name: 0, "family": "luong"}) for name in ("vocab_size", "d_model", "hidden_size", "num_layers")],
    *[("model", {name: 0, "family": "elmo"}) for name in ("vocab_size", "d_model", "num_layers")],
    ("model", {"num_heads": 0, "family": "gpt"}),
    ("model", {"begin": -1, "family": "gpt"}),
    ("model", {"end": 40_000, "family": "gpt"}),
    ("model", {"attention_window": 0}),
    ("model", {"encoder_layers": 0}),
    ("model", {"decoder_layers": -1}),
    ("model", {"d_model": 15, "num_heads": 3}),
    ("model", {"dropout": 1.0}),
    ("model", {"attention_dropout": -0.1}),
    ("data", {"row_length": 1}),
    ("data", {"row_length": 1 << 31}),
    ("data", {"dataset": "", "corpus": "tfds"}),
    ("data", {"source_language": ""}),
    ("data", {"target_language": ""}),
    ("data", {"target_language": "en"}),
    *[("data", {"bpe_dropout": value}) for value in (1.0, -0.1)],
    ("data", {"dataset": "wmt14_translate/de-en"}),  # the corpus is the numbers
    *[("data", {"temperature": value, "tags": True, "corpus": "text"}) for value in (0.0, 0.5)],
    ("data", {"unigram_alpha": -0.1, "pieces": "unigram"}),
    ("data", {"unigram_alpha": 1e308, "pieces": "unigram"}),
    ("data", {"shard_pairs": -1}),
    ("data", {"shard_pairs": 5}),  # the corpus is no text
    ("data", {"shard_pairs": 5, "corpus": "text", "tags": True}),
    ("data", {"shard_pairs": 5, "corpus": "text", "bpe_dropout": 0.1}),
    ("data", {"bpe_dropout": 0.1, "unigram_alpha": 0.1}),
    *[("train", {name: 0}) for name in ("steps", "batch_tokens", "accumulation", "warmup_steps", "log_every", "keep")],
    *[("train", {name: -1}) for name in ("save_every", "max_skipped", "seed")],
    *[("train", {name: -0.1}) for name in ("beta1", "beta2", "label_smoothing", "sampling_least", "ema_decay")],
    ("train", {"r_drop": -1.0}),
    *[("evaluate", {name: -1}) for name in ("every", "sentences")],
    *[("train", {name: 1.0}) for name in ("beta1", "beta2", "label_smoothing", "ema_decay")],
    *[("train", {name: 0.99999999}) for name in ("beta1", "beta2", "ema_decay")],  # 1 in float32
    *[("train", {"epsilon": value}) for value in (0.0, 1e-50, 1e-39, 1e39)],  # no normal number in float32
    ("train", {"warmup_steps": 1 << 31, "schedule": "constant"}),
    *[("train", {"steps": 1 << 31, "schedule": schedule}) for schedule in ("linear", "cosine")],
    ("train", {"peak_learning_rate": 0.0}),
    ("train", {"scheduled_sampling": "linear"}),  # the Transformer reads no tokens of its own
    ("train", {"sampling_k": 0.5}),
    ("train", {"sampling_k": 1e308}),
    ("train", {"patience": -1}),
    ("train", {"clip_norm": -1.0}),
    ("train", {"weight_decay": -0.1, "optimizer": "adamw"}),
    ("train", {"weight_decay": 0.1}),
    ("train", {"warmup_steps": 4001, "steps": 4000, "schedule": "cosine"}),
    ("train", {"sampling_least": 1.0}),
    ("decode", {"beam_size": 0}),
    *[("decode", {"length_penalty": value}) for value in (-0.1, 5.5)],
    ("decode", {"patience": -0.5}),
    ("decode", {"patience": 1e300}),
    ("decode", {"extra_length": 0}),
    ("decode", {"extra_length": 1025}),
    *[("model", {name: value}) for name in ("d_k", "d_v", "attention_window") for value in (1 << 31, 1 << 62)],
    *[("model", {name: (1 << 24) + 2}) for name in ("d_model", "d_ff", "max_positions")],
    *[("model", {name: 1001}) for name in ("num_layers", "encoder_layers", "decoder_layers")],
    ("model", {"d_model": (1 << 24) + 2, "family": "luong"}),
    *[("model", {"layer_norm_epsilon": value}) for value in (0.0, 1e-40, 1e39)],
    ("model", {"vocab_size": 2**31}),
    ("model", {"source_vocab_size": 2**31, "share_embeddings": False}),
    ("decode", {"max_source_length": 1}),
  ],
  ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_a_value_out_of_range_is_named(group, values):
  key, value = next(iter(values.items()))
  with pytest.raises(InputError, match=rf"^config\.{group}\.{key} is {re.escape(repr(value))}, but must be [^\n]+$"):
    serialization.from_dict({group: values})


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize(
  ("group", "key"),
  [
    ("model", "dropout"),
    ("train", "ema_decay"),
    ("train", "epsilon"),
    ("train", "peak_learning_rate"),
    ("decode", "length_penalty"),
    ("decode", "patience"),
  ],
)
def test_no_key_takes_what_is_not_a_number(group, key, value):
  with pytest.raises(InputError, match=rf"^config\.{group}\.{key} is "):
    serialization.from_dict({group: {key: value}})


@pytest.mark.parametrize(
  ("values", "keys"),
  [
    ({"model": {"num_heads": 3}}, ["model.num_heads", "model.d_model", "model.d_k"]),
    ({"model": {"num_heads": 3, "d_k": 5}}, ["model.num_heads", "model.d_model", "model.d_v"]),
    ({"model": {"source_vocab_size": 5}}, ["model.share_embeddings", "model.source_vocab_size"]),
    (
      {"model": {"source_vocab_size": 5, "share_embeddings": False}, "train": {"embeddings": "x"}},
      ["train.embeddings", "model.source_vocab_size"],
    ),
    ({"data": {"max_length": 129}}, ["data.row_length", "data.max_length"]),
    ({"data": {"dataset": "x"}}, ["data.dataset", "config.data.corpus=numbers"]),
    ({"data": {"max_length": -1}}, ["data.max_length is -1, but must be at least 0"]),
    ({"train": {"batch_tokens": 127}}, ["train.batch_tokens", "data.row_length"]),
    ({"data": {"bpe_dropout": 0.1, "pieces": "unigram"}}, ["data.bpe_dropout", "data.pieces"]),
    ({"data": {"unigram_alpha": 0.1}}, ["data.unigram_alpha", "data.pieces"]),
    ({"data": {"unigram_alpha": 0.1, "pieces": "unigram", "corpus": "grammar"}}, ["data.unigram_alpha"]),
    ({"data": {"bpe_dropout": 0.1, "corpus": "trees"}}, ["data.bpe_dropout"]),
    ({"train": {"patience": 3}, "data": {"validation": ""}}, ["train.patience", "data.validation"]),
    ({"train": {"patience": 3}, "evaluate": {"every": 0}}, ["train.patience", "evaluate.every"]),
    ({"train": {"best_by": "bleu"}, "evaluate": {"sentences": 0}}, ["train.best_by", "evaluate.sentences"]),
    ({"train": {"embeddings": "x", "init_from": "y"}}, ["train.embeddings", "train.init_from"]),
    ({"train": {"freeze_embeddings": True}}, ["train.freeze_embeddings", "train.embeddings", "train.init_from"]),
    *[
      ({"model": {"family": "gpt"}, "data": {"row_length": 64} | data, "train": train}, [key])
      for data, train, key in [
        ({}, {"r_drop": 5.0}, "train.r_drop"),
        ({}, {"best_by": "bleu"}, "train.best_by"),
        ({"corpus": "text", "tags": True}, {}, "data.tags"),
        ({"corpus": "text", "shard_pairs": 5}, {}, "data.shard_pairs"),
        ({"corpus": "text", "bpe_dropout": 0.1}, {}, "data.bpe_dropout"),
      ]
    ],
    *[({"data": {"corpus": "prepared", "train": "x", key: "x"}}, [f"data.{key}"]) for key in ("validation", "test")],
    ({"data": {"corpus": "prepared", "bpe_dropout": 0.1}}, ["data.corpus"]),
    (
      {"model": {"learned_positions": True, "max_positions": 305}},
      ["model.max_positions", "decode.max_source_length", "decode.extra_length"],
    ),
    (
      {"model": {"learned_positions": True, "max_positions": 400}, "data": {"row_length": 401}},
      ["model.max_positions", "data.row_length"],
    ),
    *[
      (
        {"model": {"fused_attention": True, "dtype": "bfloat16"} | model, "data": {"row_length": 64} | data},
        ["model.fused_attention", key],
      )
      for model, data, key in [
        ({"dtype": "float32"}, {}, "model.dtype"),
        ({"attention_dropout": 0.1}, {}, "model.attention_dropout"),
        ({"d_k": 60, "d_v": 60}, {}, "model.d_k"),
        ({"d_k": 136, "d_v": 136}, {}, "model.d_k"),
        ({"d_v": 72}, {}, "model.d_v"),
        ({}, {"row_length": 63}, "data.row_length"),
      ]
    ],
  ],
)
def test_an_impossible_combination_names_all_its_keys(values, keys):
  with pytest.raises(InputError) as caught:
    serialization.from_dict(values)
  assert all(f"{key}" in str(caught.value) for key in keys) and "\n" not in str(caught.value)


def test_heads_must_divide_only_what_is_not_set():
  config = ModelConfig(num_heads=3, d_k=5, d_v=7)
  assert (config.head_dim_k, config.head_dim_v) == (5, 7)
  assert (ModelConfig().head_dim_k, ModelConfig(d_v=32).head_dim_v) == (64, 32)


ENUMS = [
  (group, field.name, member)
  for group in (DataConfig, TrainConfig, DecodeConfig, ModelConfig, SequenceToSequenceConfig)
  for field in dataclasses.fields(group)
  if isinstance(field.default, enum.Enum)
  for member in type(field.default)
]


@pytest.mark.parametrize(("group", "name", "member"), ENUMS, ids=str)
def test_a_word_is_the_choice_that_it_names(group, name, member):
  """In Python, too; the checks of a group, which compare choices, say the same of both."""

  def made(value):
    try:
      return group(**{name: value})
    except InputError as error:
      return str(error)

  assert made(member.value) == made(member)
  with pytest.raises(InputError, match=rf"\.{name} is 'wrong', but must be one of .*{member.value}"):
    group(**{name: "wrong"})


def test_a_change_made_later_is_checked_too():
  config = Config()
  config.model.num_heads = 7
  with pytest.raises(InputError, match=r"config\.model\.num_heads is 7"):
    serialization.validated(config)


def test_the_model_config_is_hashable_by_value():
  assert hash(ModelConfig()) == hash(ModelConfig()) != hash(ModelConfig(d_ff=7))


def test_keys_of_flags():
  assert serialization.type_of("model.num_layers") is int
  for path, message in (
    ("model.layers", "config.model.layers is not a key (did you mean model.num_layers"),
    ("modle.num_layers", "config.modle is not a key (did you mean model.num_layers"),
    ("model.num_layers.x", "config.model.num_layers.x is not a key (did you mean model.num_layers"),
  ):
    with pytest.raises(InputError, match="^" + re.escape(message)):
      serialization.type_of(path)


@pytest.mark.parametrize("name", list(registry.names()))
def test_every_key_is_described(name):
  config = Config(model=registry.config_class(name)(), data=DataConfig(row_length=64))
  text = help_text(config)
  for key in serialization.flat(config):
    assert re.search(rf"^  --config\.{re.escape(key)}=.*\n      \S", text, re.MULTILINE), key


def test_a_description_is_that_of_the_nearest_class():
  found = descriptions(LuongConfig)
  assert found["input_feeding"] == "the attentional vector of one step is an input of the next step."  # its own
  assert found["hidden_size"] == "width of a recurrent state."  # of the base
  assert (
    found["dtype"] == "the type of matmuls of the layers; states, and attention over them, are float32."
  )  # of the base, not of the base's base
  assert descriptions(DataConfig)["target_language"].startswith(
    "the code of the language to translate into; for `text` the ending"
  )


@pytest.mark.parametrize(
  ("key", "text", "value"),
  [
    ("model.num_layers", "3", 3),
    ("model.num_layers", "1_000", 1000),
    ("model.d_k", "none", None),
    ("model.d_k", "None", None),
    ("model.d_k", "5", 5),
    ("model.dropout", "1e-3", 0.001),
    ("model.dropout", "0", 0.0),
    ("model.pre_norm", "True", True),
    ("model.pre_norm", "false", False),
    ("data.train", "7", "7"),
    ("data.train", "true", "true"),
    ("data.train", "", ""),
    ("model.dtype", "bfloat16", Dtype.BFLOAT16),
    ("model.score", "dot", Score.DOT),
  ],
)
def test_what_the_command_line_says_becomes_a_value(key, text, value):
  found = serialization.from_text(text, serialization.type_of(key), key)
  assert found == value and type(found) is type(value)


def test_a_number_that_is_too_long_is_named():
  with pytest.raises(InputError, match=r"^config\.train\.steps is 9+\.*9+, but must have at most 19 digits$"):
    serialization.from_text("9" * 20, int, "train.steps")


def test_changed_keys_are_checked_together():
  config = serialization.changed(Config(), {"model.num_heads": 4, "model.dtype": Dtype.BFLOAT16, "debug": True})
  assert config == Config(model=ModelConfig(num_heads=4, dtype=Dtype.BFLOAT16), debug=True)
  with pytest.raises(InputError, match=r"config\.model\.num_heads is 3, which does not divide"):
    serialization.changed(Config(), {"model.num_heads": 3})
  with pytest.raises(InputError, match=r"config\.model\.hidden_size is not a key"):  # of another family
    serialization.changed(Config(), {"model.hidden_size": 3})


def config_of(path):
  spec = importlib.util.spec_from_file_location(path.stem, path)
  assert spec is not None and spec.loader is not None
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  assert "transformer-jax train" in module.__doc__
  return module.get_config()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_config_files(path):
  config = config_of(path)
  assert serialization.validated(config) == config


@pytest.mark.parametrize(
  ("name", "sizes", "steps"),
  [("base", (6, 512, 2048, 8, 0.1), 100_000), ("big", (6, 1024, 4096, 16, 0.3), 300_000)],
)
def test_the_models_of_the_paper(name, sizes, steps):
  config = config_of(next(path for path in FILES if path.stem == name))
  model, train, decode = config.model, config.train, config.decode
  assert (model.num_layers, model.d_model, model.d_ff, model.num_heads, model.dropout) == sizes  # Table 3
  assert (model.vocab_size, train.steps, train.warmup_steps, train.label_smoothing) == (37_000, steps, 4000, 0.1)
  assert abs(train.batch_tokens - 25_000) < 256  # §5.1
  assert (decode.beam_size, decode.length_penalty, decode.extra_length) == (4, 0.6, 50)  # §6.1


@pytest.mark.parametrize(
  ("name", "schedule", "recipe"),
  [
    ("bert", Schedule.LINEAR, (1e-4, 10_000, 0.999, 256 * 512)),
    ("gpt", Schedule.COSINE, (2.5e-4, 2000, 0.999, 64 * 512)),
  ],
)
def test_the_optimizers_of_bert_and_gpt(name, schedule, recipe):
  """Devlin et al. 2019, A.2; Radford et al. 2018, §4.1: weight decay of 0.01."""
  train = importlib.import_module(f"configs.{name}").get_config("paper").train
  assert (train.optimizer, train.weight_decay, train.schedule) == (Optimizer.ADAMW, 0.01, schedule)
  assert (train.peak_learning_rate, train.warmup_steps, train.beta2, train.batch_tokens) == recipe


@pytest.mark.parametrize("name", ["gpt", "gpt:paper", "bert", "bert:classify", "bert:paper", "elmo"])
def test_language_models_have_no_label_smoothing(name):
  assert flags.read_config(name, {}).train.label_smoothing == 0


def test_the_config_for_plain_text_scores_plain_text():
  plain, text = flags.read_config("multi30k:plain", {}), flags.read_config("text", {})
  assert (text.evaluate.tokenize, text.evaluate.lowercase) == ("13a", False)
  assert (text.data.row_length, text.decode.max_source_length, text.model.vocab_size) == (128, 256, 8000)
  assert text.train == plain.train and dataclasses.replace(text.model, vocab_size=9700) == plain.model


@pytest.mark.parametrize(("group", "key"), [("data", "tokenizer"), ("train", "init_from")])
@pytest.mark.parametrize("pieces", [{"unigram_alpha": 0.1}, {"bpe_dropout": 0.1, "pieces": "unigram"}])
def test_the_kind_of_a_vocabulary_that_is_not_learned_is_not_asked_for(group, key, pieces):
  values = {"data": {**pieces}, "train": {}}
  values[group][key] = "x"
  assert serialization.from_dict(values).data.samples_pieces


def test_a_boolean_key_without_a_value_may_stand_before_another_flag():
  found = flags.read_keys(["--config.debug", "--config.train.steps", "5", "--config.model.pre_norm", "false"])
  assert found == {"debug": True, "train.steps": 5, "model.pre_norm": False}


def test_a_number_without_a_float_is_refused():
  with pytest.raises(InputError, match=r"train\.clip_norm is .*, but must be float"):
    serialization.from_dict({"train": {"clip_norm": 10**400}})


@pytest.mark.parametrize("given", ["mine.py", "./mine.py", ".//mine.py:argument", "~/mine.py"])
def test_only_a_config_of_the_package_is_said_to_come_with_it(tmp_path, monkeypatch, capsys, given):
  text = "from transformer_jax.config import Config\n\n\ndef get_config(argument=''):\n  return Config()\n"
  (tmp_path / "mine.py").write_text(text)
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv("HOME", str(tmp_path))
  assert read_config(SimpleNamespace(config=given, overrides=[])) == Config()
  assert capsys.readouterr().err == ""
  read_config(SimpleNamespace(config="text", overrides=[]))
  assert capsys.readouterr().err.startswith("--config=text comes with transformer_jax:")


@pytest.fixture
def configs(monkeypatch):
  """The modules of the package `configs`, of which there is none at first; all of them are forgotten afterwards."""

  def found():
    return {name: each for name, each in sys.modules.items() if name.partition(".")[0] == "configs"}

  before = found()
  for name in before:
    monkeypatch.delitem(sys.modules, name)
  yield found
  for name in found():
    del sys.modules[name]
  sys.modules.update(before)


def test_a_package_configs_of_the_program_stays(configs, tmp_path, monkeypatch):
  """`configs` means ours while a config file runs, and is the program's afterwards."""
  (tmp_path / "configs").mkdir()
  (tmp_path / "configs" / "mine.py").write_text("SIZE = 7\n")
  monkeypatch.syspath_prepend(str(tmp_path))
  importlib.import_module("configs.mine")
  before = configs()
  assert flags.read_config("text", {}).model.vocab_size == 8000  # which imports configs.multi30k
  assert configs() == before and before.keys() == {"configs", "configs.mine"}


def test_a_config_file_may_read_another_one(configs, tmp_path):
  """Afterwards it imports the files of its own folder still."""
  (tmp_path / "base.py").write_text("SIZE = 11\n")
  (tmp_path / "mine.py").write_text(
    "import dataclasses\nfrom transformer_jax.config import flags\n\n"
    "def get_config():\n"
    "  config = flags.read_config('text', {})\n"
    "  from configs import base, mine\n"
    "  return dataclasses.replace(config, train=dataclasses.replace(config.train, seed=base.SIZE))\n"
  )
  assert flags.read_config(str(tmp_path / "mine.py"), {}).train.seed == 11
  assert "configs.mine" in configs()


def test_what_a_config_file_defines_can_be_imported_afterwards(configs, tmp_path):
  """As the classes of a family that it registers, until another file is read."""
  (tmp_path / "mine.py").write_text("from configs.text import get_config\nSIZE = 7\n")
  flags.read_config(str(tmp_path / "mine.py"), {})
  assert importlib.import_module("configs.mine").SIZE == 7
  flags.read_config("text", {})
  assert "configs.mine" not in configs()


def test_a_config_file_is_what_runs_and_not_bytecode_beside_it(configs, tmp_path):
  """Python takes bytecode for that of a file with the same size and second of change."""
  file = tmp_path / "mine.py"
  for seed in (5, 7):
    file.write_text(
      "import dataclasses\nfrom configs import text\n\ndef get_config():\n  config = text.get_config()\n"
      f"  return dataclasses.replace(config, train=dataclasses.replace(config.train, seed={seed}))\n"
    )
    os.utime(file, (10**9, 10**9))
    assert flags.read_config(str(file), {}).train.seed == seed
  assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]


@pytest.mark.parametrize(("name", "made"), [("multi30k:plain", "plain-1"), ("multi30k", "seed-1")])
def test_the_recipes_of_multi30k_are_those_of_the_results(name, made):
  config = flags.read_config(name, {})
  result = json.loads((ROOT / "docs" / "results" / "multi30k" / f"{made}.json").read_text())
  keys = flags.read_keys([f"--config.{key}" for key in result["keys"]])
  assert flags.read_config("multi30k:plain", keys) == config
  train, steps = config.train, config.train.steps
  rates = np.asarray(learning_rate(config)(jnp.arange(steps)))
  lines = {split: [line for line in result["metrics"] if line["split"] == split] for split in ("train", "validation")}
  found = [line["learning_rate"] for line in lines["train"]]
  np.testing.assert_allclose(found, [rates[line["step"] - 1] for line in lines["train"]], rtol=1e-5)
  expected = [step for step in range(1, steps + 1) if step % config.evaluate.every == 0 or step == steps]
  assert [line["step"] for line in lines["validation"]] == expected
  decode, run = config.decode, result["test"]["run"]
  searched = {"penalty": decode.penalty.value, "beam_size": decode.beam_size, "patience": decode.patience}
  assert searched | {"length_penalty": decode.length_penalty} == {
    key: run[key] for key in (*searched, "length_penalty")
  }
  assert (train.ema_decay, train.label_smoothing, train.batch_tokens) == (0.998, 0.1, 4096)
  assert (train.save_every, train.keep) == (110, 10)
  model = config.model
  assert (model.num_layers, model.d_model, model.d_ff, model.num_heads) == (4, 128, 256, 4)
  assert model.dropout == (0.2 if name.endswith("plain") else 0.1)


def test_the_config_of_the_model_that_comes_with_the_repository():
  made = serialization.from_dict(json.loads((ROOT / "models" / "en-de" / "config.json").read_text()))
  made = dataclasses.replace(made, data=dataclasses.replace(made.data, train="", validation=""))
  assert flags.read_config("en_de", {}) == made


def test_the_recipe_of_the_first_run():
  config = flags.read_config("numbers", {})
  train, model = config.train, config.model
  assert (train.steps, train.batch_tokens, train.warmup_steps) == (700, 2048, 200)
  assert (train.peak_learning_rate, train.ema_decay) == (2e-3, 0.99)
  assert (model.vocab_size, model.num_layers, model.d_model, model.d_ff, model.num_heads) == (360, 2, 128, 512, 4)
