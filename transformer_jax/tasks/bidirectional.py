"""The task of predicting each token from those before it, and from those behind it (Peters et al. 2018, §3.1).

The first token of a text is predicted only from the right and the last one only from the left.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.data.blocks import PARTS, learn_tokenizer, packed_rows
from transformer_jax.data.segments import segment_positions
from transformer_jax.model import masking
from transformer_jax.model.embedding import output_logits
from transformer_jax.tasks.causal import counts, init_params, validation
from transformer_jax.training.loss import Sums, chunked_sums

__all__ = ["PARTS", "UNIT", "batch_sums", "counts", "init_params", "learn_tokenizer", "packed_rows", "validation"]

Params = Any

UNIT = "neighbours of tokens"


def layers(model: Any, params: Params, row: jax.Array, key: jax.Array | None) -> jax.Array:
  """The layers of one packed row `[2, row_length]` -> `[layers + 1, 2, row_length, model]`."""
  tokens, segments = row.astype(jnp.int32)
  return model.apply(
    {"params": params},
    tokens,
    segment_positions(segments),
    masking.segment_mask(segments, segments),
    deterministic=key is None,
    rngs=None if key is None else {"dropout": key},
  )


def neighbours(row: jax.Array) -> tuple[jax.Array, jax.Array]:
  """The tokens to predict at each place, the next one and the one before, and whether there is one: `[2, length]`."""
  tokens, segments = row.astype(jnp.int32)
  targets = jnp.stack([jnp.roll(tokens, -1), jnp.roll(tokens, 1)])
  same = (segments[1:] == segments[:-1]) & (segments[1:] > 0)
  none = jnp.zeros(1, bool)
  return targets, jnp.stack([jnp.concatenate([same, none]), jnp.concatenate([none, same])])


def batch_sums(config: Config, params: Params, rows: jax.Array, keys: jax.Array | None) -> Sums:
  """Loss and counts of both directions of rows `[rows, 2, row_length]`, with a dropout key for each or none."""
  model: Any = registry.module(config.model)
  in_axes = (0, None if keys is None else 0)
  hidden = jax.vmap(lambda row, key: layers(model, params, row, key)[-1], in_axes)(rows, keys)
  targets, valid = jax.vmap(neighbours)(rows)
  return chunked_sums(
    functools.partial(output_logits, dtype=config.model.dtype.value),
    jnp.asarray(model.apply({"params": params}, method="output_table")),
    hidden.reshape(-1, hidden.shape[-1]),
    targets.reshape(-1),
    valid.reshape(-1),
    config.train.label_smoothing,
  )
