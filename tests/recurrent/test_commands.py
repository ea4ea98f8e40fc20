"""Each config of configs/rnn.py through the commands that the Transformer has."""

import dataclasses
import json
from pathlib import Path

import jax
import numpy as np
import pytest
import sacrebleu
from etils import epath

from configs import multi30k, rnn
from tests.marks import long
from transformer_jax import runs
from transformer_jax.__main__ import main
from transformer_jax.analysis import requirements
from transformer_jax.config import Config, Corpus, DataConfig, Decay, DecodeConfig, EvaluateConfig, TrainConfig
from transformer_jax.decoding.translator import Translator
from transformer_jax.recurrent.config import BahdanauConfig, Cell, LuongConfig, Score, SequenceToSequenceConfig
from transformer_jax.runs import checkpoint, init_from, resume, run_folder
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks.translation import TASK
from transformer_jax.trainer import loop
from transformer_jax.training.step import abstract_state

KINDS = ("plain", "reversed", "rnn", "gru", "bahdanau", "luong-dot", "luong-general", "luong-concat")
CONFIG = str(Path(rnn.__file__))


def test_the_configs_are_what_their_names_say():
  models = {kind: rnn.get_config(kind).model for kind in KINDS}
  assert [type(model) for model in models.values()] == [
    *[SequenceToSequenceConfig] * 4,
    BahdanauConfig,
    *[LuongConfig] * 3,
  ]
  assert [models[kind].reverse_source for kind in KINDS[:4]] == [False, True, False, False]
  assert [models[kind].cell for kind in KINDS[:4]] == [Cell.LSTM, Cell.LSTM, Cell.RNN, Cell.GRU]
  assert [models[kind].score for kind in KINDS[5:]] == [Score.DOT, Score.GENERAL, Score.CONCAT]
  with pytest.raises(InputError, match="'luong' is not a recurrent model; there are rnn, gru, plain, reversed, bahdan"):
    rnn.get_config("luong")


def test_sizes_and_dropout_are_by_default_those_of_the_papers():
  seq2seq, bahdanau, luong = SequenceToSequenceConfig(), BahdanauConfig(), LuongConfig()
  assert (seq2seq.num_layers, seq2seq.d_model, seq2seq.hidden_size, seq2seq.dropout) == (4, 1000, 1000, 0.0)
  assert (bahdanau.d_model, bahdanau.hidden_size, bahdanau.attention_size) == (620, 1000, 1000)
  assert (luong.num_layers, luong.d_model, luong.hidden_size, luong.dropout) == (4, 1000, 1000, 0.2)
  assert seq2seq.reverse_source and luong.reverse_source and luong.input_feeding


@pytest.mark.parametrize("kind", ["gru", *long(kind for kind in KINDS if kind != "gru")])
def test_they_differ_from_the_transformer_in_the_model_alone(kind):
  """The numbers of parameters differ by 1% at most; each docstring gives the learning rate and dropout."""
  ours, theirs = rnn.get_config(kind), multi30k.get_config("plain")
  assert (ours.data, ours.evaluate, ours.decode) == (theirs.data, theirs.evaluate, theirs.decode)
  assert ours.train == dataclasses.replace(theirs.train, peak_learning_rate=ours.train.peak_learning_rate)
  counts = [requirements.parameters(config)["total"] for config in (ours, theirs)]
  assert counts[0] == pytest.approx(counts[1], rel=0.01)


def tiny(kind: str, prefix: str, steps: int = 4, decay: Decay = Decay.NONE) -> Config:
  config = rnn.get_config(kind)
  return dataclasses.replace(
    config,
    data=DataConfig(corpus=Corpus.TEXT, train=prefix, validation=prefix, row_length=16),
    model=dataclasses.replace(config.model, vocab_size=290, d_model=8, hidden_size=7, dropout=0.1),
    train=TrainConfig(
      steps=steps,
      batch_tokens=128,
      warmup_steps=3,
      scheduled_sampling=decay,
      sampling_k=3,
      ema_decay=0.9,
      log_every=2,
      save_every=2,
      keep=2,
    ),
    evaluate=EvaluateConfig(every=0, sentences=2),
    decode=DecodeConfig(beam_size=2, max_source_length=16, extra_length=3),
  )


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "decay"), [*((kind, Decay.NONE) for kind in KINDS), ("luong-general", Decay.LINEAR)])
def test_each_trains_resumes_averages_translates_and_evaluates(kind, decay, prefix, tmp_path, capfdbinary, monkeypatch):
  config, whole, parts = tiny(kind, prefix, decay=decay), tmp_path / "whole", tmp_path / "parts"
  loop.train(config, epath.Path(whole))
  loop.train(tiny(kind, prefix, steps=2, decay=decay), epath.Path(parts))
  loop.train(config, epath.Path(parts))
  one, other = (
    checkpoint.Checkpoints(epath.Path(folder), 2).restore(abstract_state(config, TASK)) for folder in (whole, parts)
  )
  assert one is not None and other is not None and int(one.state.step) == 4
  logged = [entry.get("forcing_probability") for entry in runs.open(whole).metrics if entry["split"] == "train"]
  # Of updates 2 and 4, before which there were 1 and 3: 1 - i / 3.
  assert logged == ([None, None] if decay is Decay.NONE else pytest.approx([2 / 3, 0]))
  jax.tree.map(np.testing.assert_array_equal, jax.device_get(one.state), jax.device_get(other.state))

  mean = str(tmp_path / "mean")
  assert main(["average", "--workdir", str(whole), "--last", "2", "--output", mean]) == 0
  capfdbinary.readouterr()
  arguments = ["evaluate", "--workdir", mean, "--source", f"{prefix}.en", "--reference", f"{prefix}.de", "--json"]
  assert main(arguments) == 0
  sources, references = (Path(f"{prefix}.{language}").read_text().splitlines() for language in ("en", "de"))
  outputs = Translator.load(mean).translate(sources)
  assert len({*outputs}) > 1  # otherwise the scores say nothing
  found = json.loads(capfdbinary.readouterr().out)
  assert found["chrf"] == pytest.approx(sacrebleu.corpus_chrf(outputs, [references]).score)


def test_a_run_of_another_family_is_refused(prefix, tmp_path):
  folder = epath.Path(tmp_path / "run")
  folder.mkdir()
  plain = tiny("plain", prefix)
  run_folder.begin_run(folder, plain, init_from.tokenizer_to_begin_with(plain, None), [])
  (folder / run_folder.CHECKPOINTS / "3").mkdir(parents=True)
  with pytest.raises(
    InputError, match=r"the config is of a bahdanau model, but the run in .* of a seq2seq: use another"
  ) as error:
    resume.run_to_go_on_with(folder, tiny("bahdanau", prefix))
  assert "\n" not in str(error.value)


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    (["--config.model.num_heads=2"], "config.model.num_heads is not a key; config.model has attention_size, d_model"),
    (["--config.model.attention_size=0"], "config.model.attention_size is 0, but must be positive"),
    (["--config.model.cell=lstm"], "cell"),
    (["--config.model.dropout=1"], "config.model.dropout is 1.0, but must be at least 0 and below 1"),
  ],
)
def test_a_mistake_is_one_sentence(capsys, flags, message):
  assert main(["plan", f"--config={CONFIG}:bahdanau", "--no-data", *flags]) == 2
  [line] = capsys.readouterr().err.splitlines()
  assert line.startswith("transformer-jax: error: ") and message in line
