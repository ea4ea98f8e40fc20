"""The task of classifying sentences (Devlin et al. 2019, §4.1), in rows of `data.labelled`."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.data import labelled, tokenizers
from transformer_jax.data.next_sentence import LABEL, PARTS, TOKEN_TYPES, TOKENS
from transformer_jax.data.row_cache import PackedRows
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.language.config import BERTClassifierConfig
from transformer_jax.model import masking
from transformer_jax.model.params import Params
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks.evaluator import LossValidation
from transformer_jax.tasks.token_prediction import apply, init_params, over_rows
from transformer_jax.training.loss import token_sums
from transformer_jax.training.sums import Sums
from transformer_jax.training.task import Task


def learn_tokenizer(config: Config) -> Tokenizer:
  """The vocabulary of the training sentences, or the one that `config.data.tokenizer` names."""
  if config.data.tokenizer:
    return tokenizers.chosen(config.data.tokenizer, config.model.vocab_size)
  sentences = (sentence for _, sentence in labelled.read(config.data, config.data.train, classes_of(config)))
  return SentencePieceTokenizer.learn(sentences, config.model.vocab_size, kind=config.data.pieces.value)


def packed_rows(config: Config, which: str, tokenizer: Tokenizer) -> PackedRows:
  """`data.labelled.packed_rows` with the classes of the model."""
  return labelled.packed_rows(config.data, which, classes_of(config), tokenizer)


def logits(model: nn.Module, params: Params, row: jax.Array, key: jax.Array | None) -> jax.Array:
  """The logits `[classes]` of a row; without a key there is no dropout."""
  row = row.astype(jnp.int32)
  valid = row[TOKEN_TYPES] > 0
  return apply(model, params, key, row[TOKENS], jnp.zeros_like(row[TOKEN_TYPES]), masking.padding_mask(valid, valid))


def batch_sums(config: Config, params: Params, rows: jax.Array, keys: jax.Array | None) -> Sums:
  """The loss and counts of rows `[rows, 3, row_length]`, with one term per sentence."""
  found = over_rows(functools.partial(logits, registry.module(config.model), params), rows, keys)
  real = jnp.any(rows[:, TOKEN_TYPES] > 0, axis=1)
  return token_sums(found, rows[:, LABEL, 0].astype(jnp.int32), real, config.train.label_smoothing)


def classes_of(config: Config) -> list[str]:
  """The labels of a model that classifies; raises InputError if its family has none."""
  if not isinstance(config.model, BERTClassifierConfig):  # of another package, which names this task
    raise InputError(f"a model that classifies needs a {BERTClassifierConfig.__name__}, or a class derived from it")
  return config.model.classes


TASK = Task(
  unit="sentences",
  parts=PARTS,
  init_params=init_params,
  batch_sums=batch_sums,
  learn_tokenizer=learn_tokenizer,
  packed_rows=packed_rows,
  validation=LossValidation,
  predictions=0,
)
