"""Everyday English to German: short sentences, such as the pairs of Tatoeba.

    transformer-jax train --config=en_de --workdir=runs/en_de --config.data.train=TRAIN --config.data.validation=VALID

TRAIN.en and TRAIN.de are raw text. With 2.6 million parameters the model is small enough for `models/en-de`, which is
the mean of the last checkpoints of a run of this config. `models/README.md` has its scores, machine and date.
"""

from transformer_jax.config import Config, Corpus, DataConfig, DecodeConfig, EvaluateConfig, TrainConfig
from transformer_jax.model.config import ModelConfig


def get_config() -> Config:
  return Config(
    data=DataConfig(corpus=Corpus.TEXT, train="", validation="", row_length=64),
    model=ModelConfig(vocab_size=6000, num_layers=4, d_model=128, d_ff=512, num_heads=4, dropout=0.1),
    train=TrainConfig(
      steps=3750,
      batch_tokens=4096,
      warmup_steps=1000,
      peak_learning_rate=4e-3,
      log_every=50,
      save_every=150,
      keep=10,
    ),
    evaluate=EvaluateConfig(every=1500, sentences=500),
    # A longer input is several sentences, of which the training text has hardly any.
    decode=DecodeConfig(beam_size=4, length_penalty=0.6, patience=1.0, max_source_length=64),
  )
