"""The task of translating: from packed sentence pairs to their loss, with any model that encodes and decodes."""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.data import packing, pipeline
from transformer_jax.data.row_cache import PackedRows
from transformer_jax.data.segments import decoder_input, segment_positions
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.model import masking
from transformer_jax.model.embedding import output_logits
from transformer_jax.tasks.validation import Validation
from transformer_jax.training.loss import Sums, chunked_sums

Params = Any

PARTS = 4  # both sides' tokens and segments, as `packing` lays them out
UNIT = "target tokens"

validation = Validation


def learn_tokenizer(config: Config) -> Tokenizer:
  """One vocabulary for both sides of the training text."""
  return pipeline.learn_tokenizer(config.data, config.model.vocab_size)


def packed_rows(config: Config, which: str, tokenizer: Tokenizer) -> PackedRows:
  """The sentence pairs of `which` in rows."""
  return pipeline.packed_rows(config.data, which, tokenizer)


def init_params(config: Config, key: jax.Array) -> Params:
  """Random parameters of the config's model."""
  model: Any = registry.module(config.model)
  tokens, mask = jnp.zeros(2, jnp.int32), jnp.ones((2, 2), bool)

  def everything(model: Any) -> jax.Array:
    return model.logits(model(tokens, tokens, tokens, tokens, mask, mask, mask))

  return model.init(key, method=everything)["params"]


def decoder_output(model: nn.Module, params: Params, row: jax.Array, key: jax.Array | None) -> jax.Array:
  """The decoder's output for one packed row.

  Args:
    model: one that translates.
    params: its parameters.
    row: `[4, row_length]` integers, as `packing` lays them out.
    key: of dropout; None is without.

  Returns:
    `[row_length, model]`.
  """
  source, source_segments, target, target_segments = row.astype(jnp.int32)
  source_positions, target_positions = segment_positions(source_segments), segment_positions(target_segments)
  hidden = model.apply(
    {"params": params},
    source,
    decoder_input(target, target_positions),
    source_positions,
    target_positions,
    masking.segment_mask(source_segments, source_segments),
    masking.combine(masking.causal_mask(len(target)), masking.segment_mask(target_segments, target_segments)),
    masking.segment_mask(target_segments, source_segments),
    deterministic=key is None,
    rngs=None if key is None else {"dropout": key},
  )
  return jnp.asarray(hidden)


def batch_sums(config: Config, params: Params, rows: jax.Array, keys: jax.Array | None) -> Sums:
  """Loss and counts of rows `[rows, 4, row_length]`, with a dropout key for each or none."""
  model = registry.module(config.model)
  in_axes = (0, None if keys is None else 0)
  hidden = jax.vmap(lambda row, key: decoder_output(model, params, row, key), in_axes)(rows, keys)
  targets = rows[:, packing.TARGET].astype(jnp.int32).reshape(-1)
  valid = rows[:, packing.TARGET_SEGMENTS].reshape(-1) > 0

  hidden = hidden.reshape(-1, hidden.shape[-1])  # the output layer is shared by all rows
  table = jnp.asarray(model.apply({"params": params}, method="output_table"))
  logits_of = functools.partial(output_logits, dtype=config.model.dtype.value)
  return chunked_sums(logits_of, table, hidden, targets, valid, config.train.label_smoothing)


def counts(config: Config, rows: jax.Array) -> dict[str, jax.Array]:
  """There is no loss but that of the target's tokens."""
  return {}
