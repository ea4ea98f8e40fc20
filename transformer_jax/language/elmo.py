"""ELMo (Peters et al. 2018): a language model of LSTMs in both directions, whose layers are mixed into features."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.language.config import ELMoConfig
from transformer_jax.language.embedding import LearnedEmbedding
from transformer_jax.model.dropout import Dropout
from transformer_jax.recurrent.lstm import LSTM
from transformer_jax.recurrent.recurrence import begins


class ELMo(nn.Module):
  """Two stacks of LSTMs over the same embeddings, one for each direction; neither sees the other (§3.1).

  From the second layer on, a layer's input is added to its output. Both
  directions use the embedding's table as their output layer.
  """

  config: ELMoConfig

  def setup(self):
    config = self.config

    def stack() -> list[LSTM]:
      return [LSTM(config.d_model, config.d_model, config.dtype) for _ in range(config.num_layers)]

    self.embedding = LearnedEmbedding(config.vocab_size, config.d_model)
    self.dropout = Dropout(config.dropout)
    self.forward = stack()
    self.backward = stack()

  def __call__(
    self, tokens: jax.Array, positions: jax.Array, mask: jax.Array, *, deterministic: bool = True
  ) -> jax.Array:
    """The states of all layers for one row.

    Args:
      tokens: `[length]` int32.
      positions: `[length]`, from 0 in each text.
      mask: `[length, length]`, true between the real tokens of one text.
      deterministic: whether dropout is off.

    Returns:
      h, `[layers + 1, 2, length, model]`: the embedding, twice; then each layer's states, read from the left and
      from the right.
    """
    directions = []
    for stack, reverse in ((self.forward, False), (self.backward, True)):
      x, restarts = self.embedding(tokens), begins(positions, mask, reverse=reverse)
      layers = [x]
      for number, lstm in enumerate(stack):
        hidden = lstm(self.dropout(x, deterministic=deterministic), restarts, reverse=reverse).hidden
        x = x + hidden if number else hidden
        layers.append(x)
      directions.append(jnp.stack(layers))
    return jnp.stack(directions, axis=1)

  def output_table(self) -> jax.Array:
    """The output layer's table, which is the embedding's: `[vocab, model]`."""
    return self.embedding.table


def mix(layers: jax.Array, weights: jax.Array, gamma: jax.Array | float = 1.0) -> jax.Array:
  """gamma sum_j softmax(s)_j h_j, eq. 1: `[layers + 1, ...]`, s `[layers + 1]` -> `[...]`."""
  return gamma * jnp.tensordot(jax.nn.softmax(weights), layers, axes=1)


class Mix(nn.Module):
  """`mix` with s and gamma as parameters of the task that uses the features; at first it is the mean of the layers."""

  @nn.compact
  def __call__(self, layers: jax.Array) -> jax.Array:
    weights = self.param("weights", nn.initializers.zeros, (len(layers),))
    return mix(layers, weights, self.param("gamma", nn.initializers.ones, ()))
