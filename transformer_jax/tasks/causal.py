"""The task of predicting each token from those before it (Radford et al. 2018, eq. 1), from blocks of text."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.data.blocks import PARTS, SEGMENTS, TOKENS, learn_tokenizer, packed_rows
from transformer_jax.data.segments import decoder_input, segment_positions
from transformer_jax.model import masking
from transformer_jax.model.embedding import output_logits
from transformer_jax.tasks.language_validation import Validation
from transformer_jax.training.loss import Sums, chunked_sums

__all__ = ["PARTS", "UNIT", "batch_sums", "counts", "init_params", "learn_tokenizer", "packed_rows", "validation"]

Params = Any

UNIT = "tokens"

validation = Validation


def init_params(config: Config, key: jax.Array) -> Params:
  """Random parameters of the config's model."""
  model: Any = registry.module(config.model)
  tokens = jnp.zeros(2, jnp.int32)
  return model.init(key, tokens, tokens, jnp.ones((2, 2), bool))["params"]


def output(model: Any, params: Params, row: jax.Array, key: jax.Array | None) -> jax.Array:
  """The model's output for one packed row `[2, row_length]` -> `[row_length, model]`, before the output layer."""
  tokens, segments = row.astype(jnp.int32)
  positions = segment_positions(segments)
  return model.apply(
    {"params": params},
    decoder_input(tokens, positions),
    positions,
    masking.combine(masking.causal_mask(len(tokens)), masking.segment_mask(segments, segments)),
    deterministic=key is None,
    rngs=None if key is None else {"dropout": key},
  )


def batch_sums(config: Config, params: Params, rows: jax.Array, keys: jax.Array | None) -> Sums:
  """Loss and counts of rows `[rows, 2, row_length]`, with a dropout key for each or none."""
  model: Any = registry.module(config.model)
  in_axes = (0, None if keys is None else 0)
  hidden = jax.vmap(lambda row, key: output(model, params, row, key), in_axes)(rows, keys)
  return chunked_sums(
    functools.partial(output_logits, dtype=config.model.dtype.value),
    jnp.asarray(model.apply({"params": params}, method="output_table")),
    hidden.reshape(-1, hidden.shape[-1]),
    rows[:, TOKENS].astype(jnp.int32).reshape(-1),
    rows[:, SEGMENTS].reshape(-1) > 0,
    config.train.label_smoothing,
  )


def counts(config: Config, rows: jax.Array) -> dict[str, jax.Array]:
  """There is no loss but that of the next token."""
  return {}
