"""The task of translation: the loss of packed sentence pairs, for any encoder-decoder model.

It is trained by teacher forcing: the decoder's input is the reference, shifted right behind BOS. With scheduled
sampling (`config.train.scheduled_sampling`) some tokens of this input are the model's own.
"""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax import registry
from transformer_jax.config import Config, Decay
from transformer_jax.data import pipeline
from transformer_jax.data.packing import INPUTS, PARTS, TARGET, TARGET_SEGMENTS
from transformer_jax.data.segments import decoder_input, segment_positions
from transformer_jax.model import masking
from transformer_jax.model.params import Params
from transformer_jax.tasks.token_prediction import Prediction, apply, batch_sums_by
from transformer_jax.tasks.translation_validation import TranslationValidation
from transformer_jax.training.scheduled_sampling import forcing_probability
from transformer_jax.training.task import Task


def init_params(config: Config, key: jax.Array) -> Params:
  """Random parameters of an encoder-decoder model, output layer included."""
  tokens = jnp.zeros(2, jnp.int32)
  mask = jnp.ones((2, 2), bool)

  def everything(model):
    return model.logits(model(tokens, tokens, tokens, tokens, mask, mask, mask))

  return registry.module(config.model).init(key, method=everything)["params"]


def decoder_output(model: nn.Module, params: Params, row: jax.Array, key: jax.Array | None) -> jax.Array:
  """The decoder's output for one packed row.

  Args:
    model: an encoder-decoder model.
    params: the model's parameters.
    row: `[4, row_length]` integers, in the layout of `packing`; a fifth array is the decoder's input.
    key: the key of dropout; None means no dropout.

  Returns:
    `[row_length, model]`.
  """
  source, source_segments, target, target_segments = row[:PARTS].astype(jnp.int32)
  source_positions, target_positions = segment_positions(source_segments), segment_positions(target_segments)
  forced = len(row) == PARTS
  return apply(
    model,
    params,
    key,
    source,
    decoder_input(target, target_positions, model.config.start_token) if forced else row[INPUTS].astype(jnp.int32),
    source_positions,
    target_positions,
    *masking.materialized(
      masking.segment_mask(source_segments, source_segments),
      masking.combine(masking.causal_mask(len(target)), masking.segment_mask(target_segments, target_segments)),
      masking.segment_mask(target_segments, source_segments),
    ),
  )


def predict(model: nn.Module, params: Params, row: jax.Array, key: jax.Array | None) -> Prediction:
  """The prediction of the target tokens of one packed row `[4, row_length]`."""
  hidden = decoder_output(model, params, row, key)
  return Prediction(hidden, row[TARGET].astype(jnp.int32), row[TARGET_SEGMENTS] > 0)


batch_sums = batch_sums_by(predict)


def chosen_rows(config: Config, params: Params, rows: jax.Array, keys: jax.Array, step: jax.Array) -> jax.Array:
  """The rows with the decoder's inputs of scheduled sampling: `[rows, 5, row_length]`; without it the rows themselves.

  What is drawn depends on the seed, the step and the row's place in the batch, as `keys` do.
  """
  if config.train.scheduled_sampling is Decay.NONE:
    return rows
  model = registry.module(config.model)
  inputs = functools.partial(_chosen_inputs, model, params, forcing_probability(config.train, step))
  return jnp.concatenate([rows, jax.vmap(inputs)(rows, keys)[:, None].astype(rows.dtype)], axis=1)


def _chosen_inputs(
  model: nn.Module, params: Params, probability: jax.Array, row: jax.Array, key: jax.Array
) -> jax.Array:
  """The decoder's input of one packed row, `[row_length]`; each token is the reference's with this probability."""
  source, source_segments, target, target_segments = row.astype(jnp.int32)
  source_positions, target_positions = segment_positions(source_segments), segment_positions(target_segments)
  coins, uniform = jax.random.uniform(jax.random.fold_in(key, 1), (2, len(target)))  # dropout's keys are others
  return jnp.asarray(
    model.apply(
      {"params": params},
      source,
      decoder_input(target, target_positions, model.config.start_token),
      source_positions,
      target_positions,
      masking.segment_mask(source_segments, source_segments),
      masking.segment_mask(target_segments, source_segments),
      coins < probability,
      uniform,
      method="choose_inputs",
    )
  )


def schedules(config: Config, step: int) -> dict[str, float]:
  """The probability of teacher forcing, if it is scheduled."""
  if config.train.scheduled_sampling is Decay.NONE:
    return {}
  return {"forcing_probability": float(forcing_probability(config.train, step))}


TASK = Task(
  unit="target tokens",
  parts=PARTS,
  init_params=init_params,
  batch_sums=batch_sums,
  learn_tokenizer=lambda config: pipeline.learn_tokenizer(config.data, *config.model.vocab_sizes),
  packed_rows=lambda config, which, tokenizer: pipeline.packed_rows(config.data, which, tokenizer),
  validation=TranslationValidation,
  chosen_rows=chosen_rows,
  schedules=schedules,
  packing_ahead=lambda config, tokenizer: pipeline.packing_ahead(config.data, tokenizer, config.train.seed),
)
