"""Mistakes that end a run before it trains: each is one sentence, and nothing is lost."""

import dataclasses
import os
from types import SimpleNamespace

import numpy as np
import pytest
from etils import epath

from tests.tiny_run import tiny
from transformer_jax import runs
from transformer_jax.config import Config, Corpus, DataConfig
from transformer_jax.data import pipeline
from transformer_jax.data.batches import HostBatches
from transformer_jax.model.config import Dtype, ModelConfig
from transformer_jax.runs import checkpoint
from transformer_jax.runtime import hosts
from transformer_jax.runtime.errors import InputError, RunError
from transformer_jax.tasks.translation import TASK
from transformer_jax.trainer import checks, loop
from transformer_jax.trainer.training_text import training_text
from transformer_jax.training.step import TrainState, abstract_state


@pytest.mark.parametrize(
  "log",
  [
    {"updates": 1.0},
    {"sums": {"loss": 1.0}, "updates": float("nan")},
    {"sums": {"others": {"x": 1.0}}},
    {"sums": 1.0},
    {"sums": {}, "stopping": {"best": 1.0}},
    {"sums": {"others": {"x": {"loss": 1.0}}}, "updates": 3.0},
    {"sums": {}, "updates": 3.0},
  ],
)
def test_a_checkpoint_with_other_numbers_for_the_log_is_named(tmp_path, monkeypatch, log):
  monkeypatch.setattr(loop.Trainer, "_where", lambda *_: "")
  trainer = object.__new__(loop.Trainer)
  trainer._batches = HostBatches.__new__(HostBatches)
  trainer._stopping, trainer._losses = loop.EarlyStopping(1), ["next"]
  restored = checkpoint.Restored(TrainState(np.int32(7), {}, {}, None), log)
  with pytest.raises(RunError, match=r"checkpoints/7/log does not have the numbers that a run writes: delete it"):
    trainer._resumed(restored, epath.Path(tmp_path))


@pytest.mark.parametrize(("log", "is_said"), [(None, True), ({"sums": {}, "updates": 0.0}, False)])
def test_a_checkpoint_without_numbers_for_the_log_is_told(tmp_path, monkeypatch, capfd, log, is_said):
  monkeypatch.setattr(loop.MetricsAccumulator, "from_dict", lambda *_: loop.MetricsAccumulator())
  trainer = object.__new__(loop.Trainer)
  trainer._batches, trainer._config = HostBatches.__new__(HostBatches), Config()
  trainer._stopping, trainer._losses = loop.EarlyStopping(1), ["next"]
  state = TrainState(np.int32(7), {}, {}, None)
  assert trainer._resumed(checkpoint.Restored(state, log), epath.Path(tmp_path))[0] is state
  lines = capfd.readouterr().err.splitlines()
  assert lines[-1] == "resuming after step 7" and max(map(len, lines)) <= 80
  assert any(line.startswith("the checkpoint of step 7 has no log: ") for line in lines) == is_said


@pytest.mark.long
def test_a_vocabulary_that_cannot_be_sampled_from_is_refused_before_the_text_is_packed(prefix, tmp_path, monkeypatch):
  loop.train(tiny(prefix, steps=1), epath.Path(tmp_path / "run"))
  config = tiny(prefix)
  config.data.tokenizer, config.data.unigram_alpha = str(tmp_path / "run" / "tokenizer.model"), 0.2
  monkeypatch.setattr(pipeline, "packed_rows", lambda *arguments: pytest.fail("the text was packed"))
  with pytest.raises(InputError, match=r"config\.data\.unigram_alpha needs"):
    loop.train(config, epath.Path(tmp_path / "other"))


def test_a_text_that_is_not_there_is_said_before_a_vocabulary_is_learned(prefix, tmp_path, monkeypatch, capfd):
  config = tiny(prefix)
  for key in ("train", "validation", "test"):
    data = dataclasses.replace(config.data, **{key: f"{prefix}.{key}"})
    with pytest.raises(InputError, match=rf"text\.{key}\.en does not exist"):
      loop.train(dataclasses.replace(config, data=data), epath.Path(tmp_path / "run"))
  assert "learning" not in capfd.readouterr().err


def test_a_text_that_is_mostly_too_long_is_told_of_before_training(prefix, tmp_path, monkeypatch, capfd):
  config = tiny(prefix)
  config.data.max_length = 3
  monkeypatch.setattr(loop, "Trainer", lambda *_: pytest.fail("a trainer"))
  with pytest.raises(pytest.fail.Exception, match="a trainer"):
    loop.train(config, tmp_path / "run")
  err = capfd.readouterr().err
  assert "\nmost of the training text is skipped, " in err
  assert "need a higher config.data.max_length and row_length" in err


@pytest.mark.long
def test_a_config_that_no_longer_fits_names_its_key(prefix, tmp_path):
  loop.train(tiny(prefix, steps=2), epath.Path(tmp_path))
  other = dataclasses.replace(tiny(prefix), model=dataclasses.replace(tiny(prefix).model, d_ff=32))
  with pytest.raises(InputError, match=r"config\.model\.d_ff is 32, but the run in .* was begun with 16"):
    loop.train(other, epath.Path(tmp_path))


@pytest.mark.long
def test_another_text_is_refused(prefix, tmp_path):
  loop.train(tiny(prefix, steps=2), epath.Path(tmp_path))
  for language in ("en", "de"):
    with open(f"{prefix}.{language}", "a") as file:
      file.write("elf\n")
  with pytest.raises(InputError, match=r"config\.data\.train now gives another text"):
    loop.train(tiny(prefix), epath.Path(tmp_path))


@pytest.mark.long
def test_a_start_that_failed_binds_nothing(prefix, tmp_path):
  with pytest.raises(InputError, match=r"config\.model\.vocab_size is 99999"):
    wrong = dataclasses.replace(tiny(prefix).model, vocab_size=99999)
    loop.train(dataclasses.replace(tiny(prefix), model=wrong), epath.Path(tmp_path / "run"))
  with pytest.raises(InputError, match="is not a run folder"):
    runs.open(tmp_path / "run").model()
  loop.train(tiny(prefix, steps=2), epath.Path(tmp_path / "run"))


def test_a_folder_that_cannot_be_written_is_refused(prefix, tmp_path):
  (tmp_path / "file").write_text("")
  with pytest.raises(InputError, match=r"run folder .* cannot be written"):
    loop.train(tiny(prefix), epath.Path(tmp_path / "file" / "run"))


@pytest.mark.parametrize("sizes", [{"batch_tokens": 10**12}, {"batch_tokens": 10**6, "accumulation": 10**10}])
def test_a_batch_that_memory_can_never_hold_is_refused_at_once(prefix, tmp_path, sizes, monkeypatch):
  monkeypatch.setattr(pipeline, "packed_rows", lambda *_: pytest.fail("the text is packed"))
  with pytest.raises(InputError, match=rf"^config\.train\.batch_tokens is {sizes['batch_tokens']}: .* GB.* lower it"):
    loop.train(tiny(prefix, **sizes), epath.Path(tmp_path / "run"))


def test_mistakes_of_the_end_are_said_before_the_training(prefix, tmp_path):
  config = tiny(prefix)
  no_test = dataclasses.replace(config, data=dataclasses.replace(config.data, test="/nowhere"))
  tokenize = dataclasses.replace(config, evaluate=dataclasses.replace(config.evaluate, tokenize="13b"))
  seed = tiny(prefix, seed=2**32)
  for wrong, message in (
    (no_test, "/nowhere"),
    (tokenize, "^config.evaluate.tokenize: '13b' is not a tokenisation"),
    (seed, "seed is 4294967296, but must be below"),
  ):
    with pytest.raises(InputError, match=message):
      loop.train(wrong, epath.Path(tmp_path / "run"))
  assert not list(tmp_path.glob("run/checkpoints/*"))


def test_an_unknown_key_is_refused(prefix, tmp_path):
  config = tiny(prefix)
  config.train.stpes = 7
  with pytest.raises(InputError, match=r"config\.train\.stpes is not a key \(did you mean steps\?\)"):
    loop.train(config, tmp_path / "run")
  assert not (tmp_path / "run").exists()
  config = tiny(prefix)
  config.model.translates = False  # of the class
  with pytest.raises(InputError, match=r"config\.model\.translates is not a key"):
    loop.train(config, tmp_path / "run")


def test_fused_attention_is_refused_where_there_is_no_gpu_for_it(prefix, tmp_path, monkeypatch):
  said = []  # to the other hosts, of which each may have another device
  monkeypatch.setattr(hosts, "gather", lambda text: [said.append(text) or text])
  config = tiny(prefix)
  config.model = ModelConfig(
    **{**vars(config.model), "d_k": 8, "d_v": 8, "dtype": Dtype.BFLOAT16, "fused_attention": True}
  )
  with pytest.raises(
    InputError, match=r"^config\.model\.fused_attention needs an NVIDIA GPU of .*, and the devices here are cpu"
  ):
    loop.train(config, epath.Path(tmp_path / "run"))
  assert not (tmp_path / "run").exists() and "fused_attention needs" in said[-1]


@pytest.mark.parametrize("tags", [False, True])
@pytest.mark.parametrize("language", ["en", "de"])
def test_a_pipe_is_refused_as_it_can_be_read_only_once(tmp_path, language, tags):
  (tmp_path / "text.en").write_text("a\n")
  (tmp_path / "text.de").write_text("b\n")
  (tmp_path / f"text.{language}").unlink()
  os.mkfifo(tmp_path / f"text.{language}")
  data = DataConfig(corpus=Corpus.TEXT, train=str(tmp_path / "text"), validation="", test="", tags=tags)
  with pytest.raises(InputError, match=f"text.{language} is a pipe, whose text can be read only once: write it to a"):
    checks.require_texts_exist(Config(data=data))


@pytest.mark.parametrize("accept", [False, True])
@pytest.mark.parametrize(("module", "name"), [(loop.resume, "run_to_go_on_with"), (loop.init_from, "open_other")])
def test_edits_are_accepted_where_that_is_said(prefix, tmp_path, monkeypatch, module, name, accept):
  told = []

  def looked(*_, accept_edits=False):
    told.append(accept_edits)
    raise InputError("enough")

  monkeypatch.setattr(module, name, looked)
  with pytest.raises(InputError, match="enough"):
    loop.train(tiny(prefix), tmp_path / "run", accept_edits=accept)
  if name == "open_other":  # for its vocabulary, and later for its parameters
    config = tiny(prefix, init_from="other")
    state = abstract_state(config, TASK)
    with pytest.raises(InputError, match="enough"):
      loop.Trainer._begun(SimpleNamespace(_config=config, _accept_edits=accept), state, None)
  assert set(told) == {accept}


def test_a_task_that_packs_before_the_run_takes_no_random_pieces():
  task = dataclasses.replace(TASK, packing_ahead=None, packed_rows=lambda *_: pytest.fail("the text is packed"))
  with pytest.raises(
    InputError, match=r"this model's task packs its text before it begins: leave out config\.data\.bpe"
  ):
    training_text(Config(data=DataConfig(bpe_dropout=0.1)), task, None)


def test_the_files_are_known_before_they_are_packed():
  """So that a change while they are packed is an error of the run."""
  done = []
  task = dataclasses.replace(
    TASK, packing_ahead=lambda *_: done.append("known"), packed_rows=lambda *_: done.append("packed")
  )
  training_text(Config(data=DataConfig(bpe_dropout=0.1)), task, None)
  assert done == ["known", "packed"]
