"""BERT (Devlin et al. 2019) of 2 million parameters, for a text of a few megabytes on a CPU core.

    transformer-jax train --config=configs/bert.py --workdir=runs/bert \
      --config.data.train=TRAIN --config.data.validation=VALID

TRAIN and VALID are plain text in UTF-8, and may be compressed (`.gz`, `.xz`). Several files are separated by `;`. A
document is a paragraph between blank lines, unless `--config.data.document` is set. The second config fine-tunes on
lines `LABEL<TAB>SENTENCE`:

    transformer-jax train --config=configs/bert.py:classify --workdir=runs/classes --config.train.init_from=runs/bert \
      --config.model.labels=LABEL,LABEL --config.data.train=TRAIN.tsv --config.data.validation=VALID.tsv
    transformer-jax classify --workdir=runs/classes < sentences

For hundreds of updates the model predicts a masked token little better than token frequencies do, until attention finds
the useful tokens. Short rows and LayerNorm before each sub-layer shorten this phase (`docs/language.md` has numbers),
so this config has both. The text was nine tenths of *War and Peace* and of WikiText-2's validation and test sets. On
the last tenth the model finds 35.5% of the masked tokens (57 minutes on one core of an Intel Xeon with other work
running, 2026-11-22, commit 4425b43). `configs/bert.py:paper` has the paper's base model, its optimizer, and its batch
of 256 rows of 512.
"""

import dataclasses

from transformer_jax.config import (
  Config,
  Corpus,
  DataConfig,
  Document,
  EvaluateConfig,
  Optimizer,
  Schedule,
  TrainConfig,
)
from transformer_jax.language.config import BERTClassifierConfig, BERTConfig
from transformer_jax.runtime.errors import InputError

SMALL = BERTConfig(
  vocab_size=2048,
  num_layers=4,
  d_model=192,
  d_ff=768,
  num_heads=4,
  max_positions=128,
  dropout=0.0,
  attention_dropout=0.0,
  pre_norm=True,
)
CLASSIFIER_TRUNK = dataclasses.replace(SMALL, dropout=0.1, attention_dropout=0.1)


def get_config(which: str = "small") -> Config:
  match which:
    case "small":
      return Config(
        data=text(32),
        model=SMALL,
        train=TrainConfig(
          steps=6000,
          batch_tokens=64 * 32,
          warmup_steps=300,
          peak_learning_rate=1e-3,
          label_smoothing=0.0,
          save_every=500,
        ),
        evaluate=EvaluateConfig(every=1000),
      )
    case "classify":
      return Config(
        data=text(32),
        model=BERTClassifierConfig(**dataclasses.asdict(CLASSIFIER_TRUNK)),
        train=TrainConfig(
          steps=300,
          batch_tokens=32 * 32,
          warmup_steps=50,
          peak_learning_rate=3e-4,
          label_smoothing=0.0,
          log_every=50,
          save_every=100,
        ),
        evaluate=EvaluateConfig(every=100),
      )
    case "paper":
      return _paper()
  raise InputError(f"{which!r} is not a config of BERT; there are small, classify and paper")


def text(row_length: int) -> DataConfig:
  """Files of paragraphs, yet to be named."""
  return DataConfig(corpus=Corpus.TEXT, document=Document.PARAGRAPH, train="", validation="", row_length=row_length)


def _paper() -> Config:
  return Config(
    data=text(512),
    model=BERTConfig(),
    train=TrainConfig(
      steps=1_000_000,
      batch_tokens=256 * 512,
      warmup_steps=10_000,
      peak_learning_rate=1e-4,
      beta2=0.999,
      epsilon=1e-6,
      optimizer=Optimizer.ADAMW,
      weight_decay=0.01,
      schedule=Schedule.LINEAR,
      label_smoothing=0.0,
    ),
  )
