"""ELMo (Peters et al. 2018) of 1.6 million parameters, for a text of a few megabytes on two CPU cores.

    transformer-jax train --config=configs/elmo.py --workdir=runs/elmo \
      --config.data.train=TRAIN --config.data.validation=VALID

TRAIN and VALID are plain text as for `configs/gpt.py`. This gives the features of a sentence in Python:

    from transformer_jax.tasks.features import Features
    Features.load("runs/elmo").features("A man rides a horse.")  # [tokens, 2 * 192]

The first nine tenths of *War and Peace* are the training text. On the last tenth the perplexity per token is 75.5, as
the mean over both directions, after 16 minutes of updates on one core of an Intel Xeon (2026-11-22, at commit 86ee954).
"""

from transformer_jax.config import Config, Corpus, DataConfig, EvaluateConfig, TrainConfig
from transformer_jax.language.config import ELMoConfig


def get_config() -> Config:
  return Config(
    data=DataConfig(corpus=Corpus.TEXT, train="", validation="", row_length=128),
    model=ELMoConfig(vocab_size=2048, num_layers=2, d_model=192),
    train=TrainConfig(
      steps=2000,
      batch_tokens=2048,
      warmup_steps=200,
      peak_learning_rate=3e-3,
      label_smoothing=0.0,
      log_every=100,
      save_every=500,
    ),
    evaluate=EvaluateConfig(every=500),
  )
