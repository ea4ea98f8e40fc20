"""The probability of a text under a language model."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.data.segments import decoder_input
from transformer_jax.model import masking
from transformer_jax.model.params import Params
from transformer_jax.runtime.values import PyTree


@functools.partial(jax.jit, static_argnames="model")
def score(model: nn.Module, params: Params, rows: jax.Array, lengths: jax.Array) -> jax.Array:
  """Computes log P(text), the sum of log P(token | tokens before it).

  Args:
    model: a language model of the registry that predicts each token from those before it.
    params: its parameters.
    rows: the tokens of each text, its end included and padding behind, `[texts, length]`.
    lengths: the number of tokens of each text, `[texts]`.

  Returns:
    `[texts]` float32; 0 for a text without tokens.
  """

  positions = jnp.arange(rows.shape[1])

  def output(row: jax.Array) -> PyTree:
    read = decoder_input(row, positions, model.config.start_token)
    # Causal alone: padding is behind the positions that count.
    return model.apply({"params": params}, read, positions, masking.causal_mask(len(row)))

  def log_prob(text: tuple[PyTree, jax.Array, jax.Array]) -> jax.Array:
    hidden, row, length = text
    log_probs = jax.nn.log_softmax(jnp.asarray(model.apply({"params": params}, hidden, method="logits")))
    chosen = jnp.take_along_axis(log_probs, row[:, None], axis=1)[:, 0]
    return jnp.sum(jnp.where(positions < length, chosen, 0))

  # One text at a time: log-probabilities `[length, vocab]` of all texts would take much memory.
  return jax.lax.map(log_prob, (jax.vmap(output)(rows), rows, lengths))
