"""BERT's two pre-training tasks: masked tokens and next sentences (Devlin et al. 2019, §3.1).

Masks are drawn again at each step, from the key of the step and the row. The authors' code instead draws ten masks
for each row before training. Validation uses fixed masks.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.data.blocks import learn_tokenizer
from transformer_jax.data.next_sentence import LABEL, PARTS, TOKEN_TYPES, TOKENS, packed_rows
from transformer_jax.language.bert import BERT
from transformer_jax.model import masking
from transformer_jax.model.params import Params
from transformer_jax.model.special_tokens import CLS, FIRST_PIECE, MASK, SEP
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks.evaluator import LossValidation
from transformer_jax.tasks.token_prediction import Prediction, output_layer_sums, over_rows
from transformer_jax.training.loss import token_sums
from transformer_jax.training.sums import Sums
from transformer_jax.training.task import Task

SHARE = 0.15  # the share of a row's tokens that are predicted
HIDDEN, REPLACED = 0.8, 0.1  # the shares of these that [MASK] or a random token replaces; the rest stays


class Masked(NamedTuple):
  """A row with masked tokens, which are to be predicted.

  Attributes:
    tokens: `[length]`, the tokens that the model sees.
    positions: `[masked]`, the positions to predict, all different.
    targets: `[masked]`, the original tokens at these positions.
    valid: `[masked]`, false at positions that are not predicted.
  """

  tokens: jax.Array
  positions: jax.Array
  targets: jax.Array
  valid: jax.Array


def predicted(row: jax.Array) -> tuple[jax.Array, jax.Array]:
  """Which tokens of a row `[3, length]` may be predicted, `[length]`, and how many are: 15% of them, at least 1."""
  tokens = row[TOKENS]
  may = (row[TOKEN_TYPES] > 0) & (tokens != CLS) & (tokens != SEP)
  available = jnp.sum(may)
  return may, jnp.minimum(available, jnp.maximum(1, jnp.round(SHARE * available).astype(jnp.int32)))


def masked(row: jax.Array, key: jax.Array, vocab_size: int) -> Masked:
  """Chooses the tokens to predict: [MASK] replaces 80% of them, a random token 10%, and 10% stay."""
  position_key, kind_key, token_key = jax.random.split(key, 3)
  tokens = row[TOKENS]
  may, count = predicted(row)
  most = max(1, round(SHARE * len(tokens)))
  _, positions = jax.lax.top_k(jnp.where(may, jax.random.uniform(position_key, tokens.shape), -1), most)
  targets, valid = tokens[positions], jnp.arange(most) < count
  kind = jax.random.uniform(kind_key, (most,))
  random = jax.random.randint(token_key, (most,), FIRST_PIECE, vocab_size, tokens.dtype)
  shown = jnp.where(kind < HIDDEN, MASK, jnp.where(kind < HIDDEN + REPLACED, random, targets))
  return Masked(tokens.at[positions].set(jnp.where(valid, shown, targets)), positions, targets, valid)


def fixed_key(row: jax.Array) -> jax.Array:
  """A random key that depends only on the row `[3, length]`, not on its place."""
  weights = 2 * jnp.arange(row.shape[1], dtype=jnp.uint32) + 1
  return jax.random.fold_in(jax.random.key(0, impl="threefry2x32"), jnp.sum(row[TOKENS].astype(jnp.uint32) * weights))


def init_params(config: Config, key: jax.Array) -> Params:
  """Random parameters of the config's model."""
  tokens = jnp.zeros(2, jnp.int32)
  return _bert(config).init(key, tokens, tokens, jnp.ones((2, 2), bool), tokens)["params"]


def _bert(config: Config) -> BERT:
  model = registry.module(config.model)
  if not isinstance(model, BERT):  # of another package, which names this task
    raise InputError(f"the task of masked tokens needs a {BERT.__name__}, or a module derived from it")
  return model


def outputs(model: BERT, params: Params, row: jax.Array, key: jax.Array | None) -> tuple[Masked, jax.Array, jax.Array]:
  """One row `[3, row_length]` with its masks, the features at the masked positions, and the next-sentence logits.

  Without a key there is no dropout, and the masks are those of `fixed_key`.
  """
  row = row.astype(jnp.int32)
  mask_key, dropout_key = jax.random.split(fixed_key(row) if key is None else key)
  chosen = masked(row, mask_key, model.config.vocab_size)
  features, next_logits = model.apply(
    {"params": params},
    chosen.tokens,
    jnp.maximum(row[TOKEN_TYPES] - 1, 0),
    masking.padding_mask(row[TOKEN_TYPES] > 0, row[TOKEN_TYPES] > 0),
    chosen.positions,
    deterministic=key is None,
    rngs=None if key is None else {"dropout": dropout_key},
  )
  return chosen, jnp.asarray(features), jnp.asarray(next_logits)


def batch_sums(config: Config, params: Params, rows: jax.Array, keys: jax.Array | None) -> Sums:
  """The losses and counts of rows `[rows, 3, row_length]`: for the masked tokens, and `next` for next sentences."""
  model = _bert(config)
  chosen, features, next_logits = over_rows(functools.partial(outputs, model, params), rows, keys)
  sums = output_layer_sums(config, model, params, Prediction(features, chosen.targets, chosen.valid))
  real = jnp.any(rows[:, TOKEN_TYPES] > 0, axis=1)
  of_next = token_sums(next_logits, rows[:, LABEL, 0].astype(jnp.int32), real, 0.0)
  return dataclasses.replace(sums, others={"next": of_next})


def counts(config: Config, rows: jax.Array) -> dict[str, jax.Array]:
  """The number of masked tokens, and the number of rows that are not empty."""
  return {
    "tokens": jnp.sum(jax.vmap(lambda row: predicted(row)[1])(rows)),
    "next": jnp.sum(jnp.any(rows[:, TOKEN_TYPES] > 0, axis=1)),
  }


TASK = Task(
  unit="masked tokens",
  parts=PARTS,
  init_params=init_params,
  batch_sums=batch_sums,
  learn_tokenizer=learn_tokenizer,
  packed_rows=packed_rows,
  validation=LossValidation,
  counts=counts,
)
