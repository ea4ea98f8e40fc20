"""A small Transformer for your own text: plain sentences with capitals and punctuation, some thousand pairs or more.

    transformer-jax train --config=text --workdir=runs/mine --config.data.train=TRAIN --config.data.validation=VALID

The layers and the recipe are those of `multi30k.py:plain`, which has the measured results: 29,000 pairs, about an hour
of two CPU cores. This config has 8,000 tokens and scores plain text, and its rows take longer sentences.
`docs/training.md` tells which keys to change for less text or less time.
"""

import dataclasses

from configs import multi30k
from transformer_jax.config import Config


def get_config() -> Config:
  config = multi30k.get_config("plain")
  return dataclasses.replace(
    config,
    data=dataclasses.replace(config.data, row_length=128),
    model=dataclasses.replace(config.model, vocab_size=8000),
    evaluate=dataclasses.replace(config.evaluate, tokenize="13a", lowercase=False),
    decode=dataclasses.replace(config.decode, max_source_length=256),
  )
