"""The task of predicting each token from the tokens before it (Radford et al. 2018, eq. 1), in blocks of text."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.data.blocks import PARTS, SEGMENTS, TOKENS, learn_tokenizer, packed_rows
from transformer_jax.data.segments import decoder_input, segment_positions
from transformer_jax.model import masking
from transformer_jax.model.params import Params
from transformer_jax.tasks.evaluator import LossValidation
from transformer_jax.tasks.token_prediction import Prediction, apply, batch_sums_by, init_params
from transformer_jax.training.task import Task


def output(model: nn.Module, params: Params, row: jax.Array, key: jax.Array | None) -> jax.Array:
  """The model's output before the output layer, for one packed row: `[2, row_length]` -> `[row_length, model]`."""
  tokens, segments = row.astype(jnp.int32)
  positions = segment_positions(segments)
  (mask,) = masking.materialized(
    masking.combine(masking.causal_mask(len(tokens)), masking.segment_mask(segments, segments))
  )
  return apply(model, params, key, decoder_input(tokens, positions, model.config.start_token), positions, mask)


def predict(model: nn.Module, params: Params, row: jax.Array, key: jax.Array | None) -> Prediction:
  """The prediction of the token at each position of one packed row `[2, row_length]`."""
  return Prediction(output(model, params, row, key), row[TOKENS].astype(jnp.int32), row[SEGMENTS] > 0)


batch_sums = batch_sums_by(predict)

TASK = Task(
  unit="tokens",
  parts=PARTS,
  init_params=init_params,
  batch_sums=batch_sums,
  learn_tokenizer=learn_tokenizer,
  packed_rows=packed_rows,
  validation=LossValidation,
)
