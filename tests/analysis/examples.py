"""Small configs, and the operations of a Transformer by formula."""

import dataclasses

from transformer_jax.config import Config, DataConfig, TrainConfig
from transformer_jax.model.config import ModelConfig

SMALL = Config(
  data=DataConfig(row_length=31),
  model=ModelConfig(vocab_size=997, num_layers=2, d_model=38, d_ff=101, num_heads=3, d_k=11, d_v=7, dropout=0.1),
  train=TrainConfig(batch_tokens=13 * 31),
)
TINY = Config(
  data=DataConfig(row_length=61),
  model=ModelConfig(vocab_size=2003, num_layers=2, d_model=128, d_ff=256, num_heads=4, dropout=0.3),
  train=TrainConfig(batch_tokens=60 * 61),
)


def with_train(config, **changes):
  return dataclasses.replace(config, train=dataclasses.replace(config.train, **changes))


def with_model(config, **changes):
  return dataclasses.replace(config, model=dataclasses.replace(config.model, **changes))


def transformer_flops(model: ModelConfig, length: int) -> int:
  """The operations of the forward pass' matmuls by formula, for a row of `length` source and target positions each."""
  d, heads = model.d_model, model.num_heads
  widths = heads * (model.head_dim_k + model.head_dim_v)  # of a token's queries and head outputs, or keys and values
  projections = 2 * length * d * (2 * widths)
  scores_and_means = 2 * length * length * widths
  feed_forward = 2 * length * d * model.d_ff * 2
  encoder_layer = projections + scores_and_means + feed_forward
  decoder_layer = 2 * (projections + scores_and_means) + feed_forward
  return model.num_layers * (encoder_layer + decoder_layer) + 2 * length * d * model.vocab_size
