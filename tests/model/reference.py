"""The Transformer in NumPy and float64 with the options that the paper does not have.

What the paper has is in `transformer_jax.paper.formulas`, which knows nothing of the modules.
"""

import math
from typing import Any

import numpy as np

from transformer_jax.model.config import ModelConfig
from transformer_jax.paper.formulas import decoder_layer, encoder_layer, layer_norm, sinusoids

Params = Any


def enter(table: np.ndarray, positions_params: Params, tokens: np.ndarray, positions: np.ndarray) -> np.ndarray:
  """§3.4 and §3.5: embeddings times sqrt(d_model), plus positions; learned ones are scaled alike."""
  d_model = table.shape[1]
  if positions_params is None:
    encoding = sinusoids(positions, d_model)
  else:
    encoding = positions_params["table"][positions] * math.sqrt(d_model)
  return table[tokens] * math.sqrt(d_model) + encoding


def within(mask: np.ndarray, window: int) -> np.ndarray:
  """§4: the mask, without what is farther away than the window."""
  return np.array([[allowed and abs(i - j) <= window for j, allowed in enumerate(row)] for i, row in enumerate(mask)])


def transformer(
  config: ModelConfig,
  params: Params,
  source: np.ndarray,
  target: np.ndarray,
  source_positions: np.ndarray,
  target_positions: np.ndarray,
  source_mask: np.ndarray,
  target_mask: np.ndarray,
  cross_mask: np.ndarray,
) -> np.ndarray:
  """Figure 1: logits `[target, vocab]`."""
  target_table = params["target_embedding"]["table"]
  source_table = target_table if config.share_embeddings else params["own_source_embedding"]["table"]
  output_table = target_table if config.share_logits else params["own_output"]["table"]
  encoder, decoder = params["encoder"], params["decoder"]

  if config.attention_window is not None:
    source_mask, target_mask = (within(mask, config.attention_window) for mask in (source_mask, target_mask))

  memory = enter(source_table, params.get("source_positions"), source, source_positions)
  for i in range(config.encoder_depth):
    memory = encoder_layer(encoder[f"layers_{i}"], memory, source_mask, pre_norm=config.pre_norm)
  memory = layer_norm(encoder["norm"], memory) if config.pre_norm else memory

  x = enter(target_table, params.get("target_positions"), target, target_positions)
  for i in range(config.decoder_depth):
    x = decoder_layer(decoder[f"layers_{i}"], x, memory, target_mask, cross_mask, pre_norm=config.pre_norm)
  x = layer_norm(decoder["norm"], x) if config.pre_norm else x
  return x @ output_table.T + params.get("logits_bias", 0)
