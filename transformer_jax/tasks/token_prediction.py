"""The shared part of tasks that predict tokens: the model for each row, then one output layer for all rows."""

import functools
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.model.embedding import output_logits
from transformer_jax.model.params import Params
from transformer_jax.runtime.values import PyTree
from transformer_jax.training.chunked_loss import chunk_size, chunked_sums
from transformer_jax.training.loss import r_drop_sums
from transformer_jax.training.sums import Sums

Tree = TypeVar("Tree")  # of arrays


class Prediction(NamedTuple):
  """A model's output for one row, and the tokens to predict.

  Attributes:
    hidden: `[..., model]`, the output before the output layer.
    targets: `[...]` int32, the tokens to predict.
    valid: `[...]` booleans, false where there is no token to predict.
  """

  hidden: jax.Array
  targets: jax.Array
  valid: jax.Array


def init_params(config: Config, key: jax.Array) -> Params:
  """Random parameters of a model that takes tokens, their positions or types, and a mask."""
  tokens = jnp.zeros(2, jnp.int32)
  return registry.module(config.model).init(key, tokens, tokens, jnp.ones((2, 2), bool))["params"]


def apply(model: nn.Module, params: Params, key: jax.Array | None, *inputs: jax.Array) -> jax.Array:
  """The model's output for one row; `key` is the key of dropout, without a key there is no dropout."""
  rngs = None if key is None else {"dropout": key}
  return jnp.asarray(model.apply({"params": params}, *inputs, deterministic=key is None, rngs=rngs))


def over_rows(function: Callable[[jax.Array, jax.Array | None], Tree], rows: jax.Array, keys: jax.Array | None) -> Tree:
  """`function(row, key)` for every row; `keys` has a key for each row, or is None."""
  return jax.vmap(function, in_axes=(0, None if keys is None else 0))(rows, keys)


def output_layer_sums(
  config: Config, model: nn.Module, params: Params, predicted: Prediction, *, twice: bool = False
) -> Sums:
  """The cross entropy of all predictions in chunks of tokens, or the loss of R-Drop.

  Args:
    config: the experiment.
    model: a module with a method `output_table`, `[vocab, model]`, and maybe `output_bias`, `[vocab]` or None.
    params: its parameters.
    predicted: the predictions.
    twice: whether the second half of the predictions is the first half with other dropout, for R-Drop.
  """
  table = jnp.asarray(model.apply({"params": params}, method="output_table"))
  bias: PyTree = model.apply({"params": params}, method="output_bias") if hasattr(model, "output_bias") else None

  def logits_of(weights: tuple[jax.Array, jax.Array | None], hidden: jax.Array) -> jax.Array:
    table, bias = weights
    return output_logits(table, hidden, config.model.dtype.value, bias)

  hidden = predicted.hidden.reshape(-1, predicted.hidden.shape[-1])
  targets, valid = predicted.targets.reshape(-1), predicted.valid.reshape(-1)
  if not twice:
    return chunked_sums(logits_of, (table, bias), hidden, targets, valid, config.train.label_smoothing)

  def logits_of_both(weights: tuple[jax.Array, jax.Array | None], hidden: jax.Array) -> tuple[jax.Array, jax.Array]:
    return logits_of(weights, hidden[:, 0]), logits_of(weights, hidden[:, 1])

  both, first = jnp.stack(jnp.split(hidden, 2), axis=1), slice(len(targets) // 2)
  chunk = -(-chunk_size(len(targets)) // 2)  # as many logits, since a token has those of two passes
  sums_of = functools.partial(r_drop_sums, alpha=config.train.r_drop)
  return chunked_sums(
    logits_of_both, (table, bias), both, targets[first], valid[first], config.train.label_smoothing, chunk, sums_of
  )


def batch_sums_by(
  predict: Callable[[nn.Module, Params, jax.Array, jax.Array | None], Prediction],
) -> Callable[[Config, Params, jax.Array, jax.Array | None], Sums]:
  """The function `batch_sums` of a task that predicts tokens.

  Args:
    predict: (model, params, row, key) -> the `Prediction` of one packed row; the model is one for `output_layer_sums`.
  """

  def batch_sums(config: Config, params: Params, rows: jax.Array, keys: jax.Array | None) -> Sums:
    model = registry.module(config.model)
    twice = keys is not None and config.train.r_drop > 0
    if keys is not None and twice:
      others = jax.vmap(lambda key: jax.random.fold_in(key, 2))(keys)
      rows, keys = jnp.concatenate([rows, rows]), jnp.concatenate([keys, others])
    predicted = over_rows(functools.partial(predict, model, params), rows, keys)
    return output_layer_sums(config, model, params, predicted, twice=twice)

  return batch_sums
