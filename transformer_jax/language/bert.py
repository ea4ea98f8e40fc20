"""BERT (Devlin et al. 2019): the Transformer's encoder alone, in which a token sees the tokens on both sides."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.language.config import BERTClassifierConfig, BERTConfig
from transformer_jax.language.embedding import LearnedEmbedding
from transformer_jax.model.dropout import Dropout
from transformer_jax.model.embedding import output_logits
from transformer_jax.model.encoder import Encoder
from transformer_jax.model.feed_forward import ACTIVATIONS
from transformer_jax.model.promotion import promote_operands
from transformer_jax.model.sublayer import layer_norm


def _dense(features: int, config: BERTConfig) -> nn.Dense:
  """A layer whose matmul has the config's type, and whose bias and result are float32."""
  return nn.Dense(
    features,
    kernel_init=nn.initializers.normal(0.02),
    dtype=config.dtype.value,
    promote_dtype=promote_operands,
    dot_general=functools.partial(jax.lax.dot_general, preferred_element_type=jnp.float32),
  )


class BERTTrunk(nn.Module):
  """Embeddings, encoder and pooler: the part that pre-training and fine-tuning share."""

  config: BERTConfig

  def setup(self):
    config = self.config
    self.embedding = LearnedEmbedding(config.vocab_size, config.d_model)
    self.positions = LearnedEmbedding(config.max_positions, config.d_model)
    self.sides = LearnedEmbedding(2, config.d_model)  # of the token types; checkpoints have this name
    self.embedding_norm = layer_norm(config.blocks)
    self.embedding_dropout = Dropout(config.dropout)
    self.encoder = Encoder(config.blocks)
    self.pooler = _dense(config.d_model, config)

  def __call__(
    self, tokens: jax.Array, token_type_ids: jax.Array, mask: jax.Array, *, deterministic: bool
  ) -> jax.Array:
    """Tokens `[length]`, token type ids `[length]` of 0 and 1, mask `[length, length]` -> `[length, model]`."""
    x = self.embedding(tokens) + self.positions(jnp.arange(len(tokens))) + self.sides(token_type_ids)
    x = self.embedding_norm(x.astype(self.config.dtype.value))
    return self.encoder(self.embedding_dropout(x, deterministic=deterministic), mask, deterministic=deterministic)

  def pooled(self, hidden: jax.Array) -> jax.Array:
    """tanh(W h + b) with h of the first position: `[length, model]` -> `[model]`."""
    return jnp.tanh(self.pooler(hidden[0])).astype(self.config.dtype.value)


class BERT(nn.Module):
  """The trunk with the output layers of pre-training: masked tokens and the next sentence (§3.1).

  Both are as in the authors' code, so that its checkpoints load: softmax(E LayerNorm(gelu(W h + b)) + b'), and a layer
  on `pooled`. The paper has no layer between h and the outputs.
  """

  config: BERTConfig

  def setup(self):
    config = self.config
    self.trunk = BERTTrunk(config)
    self.transform = _dense(config.d_model, config)
    self.transform_norm = layer_norm(config.blocks)
    self.bias = self.param("output_bias", nn.initializers.zeros, (config.vocab_size,))
    self.next = _dense(2, config)

  def __call__(
    self,
    tokens: jax.Array,
    token_type_ids: jax.Array,
    mask: jax.Array,
    masked_positions: jax.Array,
    *,
    deterministic: bool = True,
  ) -> tuple[jax.Array, jax.Array]:
    """The features of the masked tokens, and the logits of whether the second text follows the first.

    Args:
      tokens: `[length]` int32: [CLS], a text, [SEP], another text, [SEP].
      token_type_ids: `[length]`, 0 up to the first [SEP], then 1.
      mask: `[length, length]`.
      masked_positions: `[masked]`, the positions of the tokens to predict.
      deterministic: whether dropout is off.

    Returns:
      `[masked, model]`, the input of `logits`; and `[2]` float32, the logits of "random" and "next".
    """
    hidden = self.trunk(tokens, token_type_ids, mask, deterministic=deterministic)
    features = ACTIVATIONS[self.config.blocks.activation](self.transform(hidden[masked_positions]))
    features = self.transform_norm(features.astype(self.config.dtype.value))
    return features, self.next(self.trunk.pooled(hidden))

  def output_table(self) -> jax.Array:
    """The output layer's table, which is the embedding's: `[vocab, model]`."""
    return self.trunk.embedding.table

  def output_bias(self) -> jax.Array:
    """The output layer's bias, `[vocab]`."""
    return self.bias

  def logits(self, features: jax.Array) -> jax.Array:
    """`[..., model]` -> float32 `[..., vocab]`."""
    return output_logits(self.output_table(), features, self.config.dtype.value, self.output_bias())


class BERTClassifier(nn.Module):
  """The trunk with one layer on the pooled first position (§4.1, with the pooler of the authors' code)."""

  config: BERTClassifierConfig

  def setup(self):
    self.trunk = BERTTrunk(self.config)
    self.dropout = Dropout(self.config.dropout)
    self.classifier = _dense(len(self.config.classes), self.config)

  def __call__(
    self, tokens: jax.Array, token_type_ids: jax.Array, mask: jax.Array, *, deterministic: bool = True
  ) -> jax.Array:
    """The logits of a sentence's classes, float32 `[classes]`; the arguments are those of `BERT`."""
    pooled = self.trunk.pooled(self.trunk(tokens, token_type_ids, mask, deterministic=deterministic))
    return self.classifier(self.dropout(pooled, deterministic=deterministic))
