"""BERT (Devlin et al. 2019) of 2 million parameters, for a text of a few megabytes on two CPU cores.

    python train.py --config=configs/bert.py --workdir=runs/bert --config.data.train=FILE --config.data.validation=FILE

FILE is plain text, UTF-8, as it is or compressed (`.gz`, `.xz`); several are separated by `;`. Its documents are the
paragraphs between blank lines (`--config.data.document` says otherwise). Then, from lines `LABEL<TAB>SENTENCE`:

    python train.py --config=configs/bert.py:classify --workdir=runs/classes --config.train.init_from=runs/bert \
      --config.model.labels=LABEL,LABEL --config.data.train=TSV --config.data.validation=TSV
    python -m transformer_jax classify --workdir=runs/classes < sentences

**It does not learn yet as it should**: from nine tenths of *War and Peace* and of WikiText-2's validation and test sets
(5.1 MB) its 3,000 updates learn little more than how often each piece is. On the rest the masked ones' perplexity is
518, and whether the next sentence follows is told in 74% (46 minutes on one core of an Intel Xeon, 2026-11-22, commit
86ee954).

`configs/bert.py:paper` has the sizes of the paper's base model and its batch of 256 rows of 512.
"""

import dataclasses

from transformer_jax.config import Config, Corpus, DataConfig, Document, EvaluateConfig, TrainConfig
from transformer_jax.errors import InputError
from transformer_jax.language.config import BERTClassifierConfig, BERTConfig

SIZES = BERTConfig(vocab_size=2048, num_layers=4, d_model=192, d_ff=768, num_heads=4, max_positions=128)


def get_config(which: str = "small") -> Config:
  text = DataConfig(corpus=Corpus.TEXT, document=Document.PARAGRAPH, train="", validation="", row_length=128)
  match which:
    case "small":
      return Config(
        data=text,
        model=SIZES,
        train=TrainConfig(
          steps=3000,
          batch_tokens=32 * 128,
          warmup_steps=300,
          peak_learning_rate=1e-3,
          label_smoothing=0.0,
          save_every=500,
        ),
        evaluate=EvaluateConfig(every=500),
      )
    case "classify":
      return Config(
        data=dataclasses.replace(text, row_length=64),
        model=BERTClassifierConfig(**dataclasses.asdict(SIZES)),
        train=TrainConfig(
          steps=300,
          batch_tokens=32 * 64,
          warmup_steps=50,
          peak_learning_rate=3e-4,
          label_smoothing=0.0,
          log_every=50,
        ),
        evaluate=EvaluateConfig(every=100),
      )
    case "paper":
      return Config(
        data=dataclasses.replace(text, row_length=512),
        model=BERTConfig(),
        train=TrainConfig(
          steps=1_000_000,
          batch_tokens=256 * 512,
          warmup_steps=10_000,
          peak_learning_rate=1e-4,
          beta2=0.999,
          epsilon=1e-6,
          label_smoothing=0.0,
        ),
      )
  raise InputError(f"{which!r} is not a config of BERT; there are small, classify and paper")
