"""The task of predicting each token from the tokens before it and from those after it (Peters et al. 2018, §3.1).

The first token of a text is predicted only from the right, the last one only from the left.
"""

import dataclasses

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.data.segments import segment_positions
from transformer_jax.model import masking
from transformer_jax.model.params import Params
from transformer_jax.tasks import causal
from transformer_jax.tasks.token_prediction import Prediction, apply, batch_sums_by


def layers(model: nn.Module, params: Params, row: jax.Array, key: jax.Array | None) -> jax.Array:
  """The layers of one packed row `[2, row_length]` -> `[layers + 1, 2, row_length, model]`."""
  tokens, segments = row.astype(jnp.int32)
  (mask,) = masking.materialized(masking.segment_mask(segments, segments))
  return apply(model, params, key, tokens, segment_positions(segments), mask)


def neighbours(row: jax.Array) -> tuple[jax.Array, jax.Array]:
  """The next token and the previous one at each position, and whether they exist: two arrays `[2, length]`."""
  tokens, segments = row.astype(jnp.int32)
  targets = jnp.stack([jnp.roll(tokens, -1), jnp.roll(tokens, 1)])
  same = (segments[1:] == segments[:-1]) & (segments[1:] > 0)
  none = jnp.zeros(1, bool)
  return targets, jnp.stack([jnp.concatenate([same, none]), jnp.concatenate([none, same])])


def predict(model: nn.Module, params: Params, row: jax.Array, key: jax.Array | None) -> Prediction:
  """The prediction of both neighbours of each token of one packed row `[2, row_length]`."""
  return Prediction(layers(model, params, row, key)[-1], *neighbours(row))


batch_sums = batch_sums_by(predict)

TASK = dataclasses.replace(causal.TASK, unit="predicted tokens", batch_sums=batch_sums, predictions=2)
