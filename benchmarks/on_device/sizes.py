"""The models that are measured on a device, and packed rows of random tokens for them."""

import dataclasses

import numpy as np

from transformer_jax.config import Config, DataConfig, TrainConfig
from transformer_jax.data import packing
from transformer_jax.data.tokenizer import row_type
from transformer_jax.model.config import Dtype, ModelConfig

BASE = ModelConfig(dtype=Dtype.BFLOAT16)
BIG = dataclasses.replace(BASE, d_model=1024, d_ff=4096, num_heads=16, dropout=0.3)
TINY = dataclasses.replace(BASE, vocab_size=301, num_layers=1, d_model=32, d_ff=48, num_heads=2)

# Tokens of a sentence, EOS included: WMT14's newstest sets have a median near 25 and a long tail.
_MEDIAN, _SIGMA = 25, 0.6


def models(tiny: bool) -> dict[str, ModelConfig]:
  """The models by name."""
  return {"tiny": TINY} if tiny else {"base": BASE, "big": BIG}


def config(model: ModelConfig, row_length: int, tokens: int) -> Config:
  """An experiment with batches of about `tokens` positions on each side."""
  rows = max(1, round(tokens / row_length))
  train = TrainConfig(batch_tokens=rows * row_length, label_smoothing=0.1)
  return Config(data=DataConfig(row_length=row_length), model=model, train=train)


def packed_rows(model: ModelConfig, row_length: int, rows: int) -> np.ndarray:
  """`[rows, 4, row_length]`: random tokens in sentence pairs whose lengths are spread like those of news."""
  generator = np.random.default_rng(0)
  found: list[np.ndarray] = []
  while sum(map(len, found)) < rows:
    common = generator.lognormal(np.log(_MEDIAN), _SIGMA, (1000, 1))
    drawn = common * generator.uniform(0.8, 1.25, (1000, 2))
    lengths = np.clip(drawn.round().astype(int), 2, row_length)
    pairs = [tuple(generator.integers(4, model.vocab_size, n).tolist() for n in pair) for pair in lengths]
    found += packing.pack(pairs, row_length, row_type(model.vocab_sizes))
  return np.concatenate(found)[:rows]
