"""English constituency parsing (§6.3): the words of a sentence become its linearised tree (`data/trees.py`).

    transformer-jax train --config=configs/parsing.py --workdir=runs/parsing

trains a small model on the sentences of `data/grammar.py`, without a download. docs/parsing.md has the result.

    transformer-jax train --config=configs/parsing.py:wsj --workdir=runs/wsj \
      '--config.data.train=TRAIN1;TRAIN2' --config.data.validation=VALID --config.data.test=TEST

has the settings of the paper's model for the Wall Street Journal, and `:semi-supervised` those of its other model. They
are the base model with what §6.3 changes. Each file is a treebank in Penn's format. The paper trains on sections 2 to
21, validates on section 22, tests on section 23, and reports an F1 of 91.3 and of 92.7. It does not say which dropout
and which learning rate it chose: here they are those of the base model. These two have not been run: the Penn Treebank
is licensed.
"""

import dataclasses

from configs import base
from transformer_jax.config import Config, Corpus, DataConfig, DecodeConfig, EvaluateConfig, TrainConfig
from transformer_jax.model.config import ModelConfig
from transformer_jax.paper.table4 import SETTINGS
from transformer_jax.runtime.errors import InputError


def get_config(which: str = "grammar") -> Config:
  if which == "grammar":
    return _grammar()
  if which not in SETTINGS:
    raise InputError(f"{which!r} is not a config of parsing; there are grammar, {' and '.join(SETTINGS)}")
  config, setting = base.get_config(), SETTINGS[which]
  return dataclasses.replace(
    config,
    data=DataConfig(corpus=Corpus.TREES, target_language="tree", train="", validation="", row_length=512),
    model=dataclasses.replace(config.model, **setting.model),
    decode=dataclasses.replace(config.decode, **setting.decode),
  )


def _grammar() -> Config:
  return Config(
    data=DataConfig(
      corpus=Corpus.GRAMMAR,
      target_language="tree",
      train="train",
      validation="validation",
      test="test",
      row_length=192,
    ),
    model=ModelConfig(
      vocab_size=291,  # 260 for bytes and special tokens, a space, and 30 brackets and tags
      source_vocab_size=600,
      share_embeddings=False,
      num_layers=2,
      d_model=128,
      d_ff=512,
      num_heads=4,
    ),
    train=TrainConfig(
      steps=2000,
      batch_tokens=8 * 192,
      warmup_steps=400,
      peak_learning_rate=2e-3,
      ema_decay=0.99,
      log_every=50,
      save_every=500,
    ),
    evaluate=EvaluateConfig(every=500, sentences=100, tokenize="none"),
    decode=DecodeConfig(beam_size=4, length_penalty=0.3, extra_length=300, max_source_length=64),
  )
