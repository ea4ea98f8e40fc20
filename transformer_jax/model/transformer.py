"""The Transformer (Figure 1) for one sentence pair: encode, decode, and decode one more token."""

import flax.linen as nn
import jax

from transformer_jax.model import cache as caching
from transformer_jax.model import masking
from transformer_jax.model.cache import Cache, Memory, continue_ancestors
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.decoder import Decoder
from transformer_jax.model.dropout import Dropout
from transformer_jax.model.embedding import Embedding, output_logits
from transformer_jax.model.encoder import Encoder
from transformer_jax.model.positional_encoding import PositionalEncoding, from_zero


class Transformer(nn.Module):
  """Encoder, decoder, embeddings and output layer.

  No method has a batch axis; `jax.vmap` over `model.apply` makes one. Where
  `deterministic` is false, dropout takes its keys from the "dropout" stream.
  """

  config: ModelConfig
  encoder_class, decoder_class = Encoder, Decoder

  def setup(self):
    config = self.config
    self.target_embedding = Embedding(config)
    if not config.share_embeddings:
      self.own_source_embedding = Embedding(config, of_source=True)
    if not config.share_logits:
      self.own_output = Embedding(config)
    if config.logits_bias:
      self.logits_bias = self.param("logits_bias", nn.initializers.zeros, (config.vocab_size,))
    self.source_positions = PositionalEncoding(config)
    self.target_positions = PositionalEncoding(config)
    self.embedding_dropout = Dropout(config.dropout)
    self.encoder = self.encoder_class(config)
    self.decoder = self.decoder_class(config)

  def __call__(
    self,
    source: jax.Array,
    target: jax.Array,
    source_positions: jax.Array | None = None,
    target_positions: jax.Array | None = None,
    source_mask: jax.Array | None = None,
    target_mask: jax.Array | None = None,
    cross_mask: jax.Array | None = None,
    *,
    deterministic: bool = True,
  ) -> jax.Array:
    """The decoder's output before the output layer.

    `model.apply(variables, source, target)` is enough for one sentence pair, padded or not. Packed rows come with
    their own positions and masks.

    Args:
      source: `[source]` int32 tokens.
      target: `[target]` int32, the decoder's input: BOS (or `config.start`), then the target without its last token.
      source_positions, target_positions: int32, from 0 in each sentence; None is 0, 1, 2 and so on.
      source_mask: `[source, source]`; None hides PAD.
      target_mask: `[target, target]`, causal; None hides PAD and what comes later.
      cross_mask: `[target, source]`; None hides PAD.
      deterministic: whether dropout is off.

    Returns:
      `[target, model]`, the input of `logits`.
    """
    source_positions, target_positions = from_zero(source, source_positions), from_zero(target, target_positions)
    source_mask, target_mask, cross_mask = masking.for_pair(
      source, target, source_mask, target_mask, cross_mask, self.config.start_token
    )
    memory = self.encode(source, source_positions, source_mask, deterministic=deterministic)
    return self.decode(target, target_positions, memory, target_mask, cross_mask, deterministic=deterministic)

  def encode(
    self, source: jax.Array, positions: jax.Array, mask: jax.Array, *, deterministic: bool = True
  ) -> jax.Array:
    """Tokens `[source]`, positions `[source]`, mask `[source, source]` -> memory `[source, model]`."""
    embedding = self.target_embedding if self.config.share_embeddings else self.own_source_embedding
    x = self._layer_input(embedding(source) + self.source_positions(positions), deterministic)
    return self.encoder(x, self._restricted(mask), deterministic=deterministic)

  def decode(
    self,
    target: jax.Array,
    positions: jax.Array,
    memory: jax.Array,
    self_mask: jax.Array,
    cross_mask: jax.Array,
    *,
    deterministic: bool = True,
  ) -> jax.Array:
    """Tokens `[target]` behind BOS, memory `[source, model]` -> `[target, model]`; masks as in `__call__`."""
    x = self._layer_input(self.target_embedding(target) + self.target_positions(positions), deterministic)
    return self.decoder(x, memory, self._restricted(self_mask), cross_mask, deterministic=deterministic)

  def logits(self, hidden: jax.Array) -> jax.Array:
    """`[..., model]` -> float32 `[..., vocab]`."""
    return output_logits(self.output_table(), hidden, self.config.dtype.value, self.output_bias())

  def output_table(self) -> jax.Array:
    """The output layer's table, `[vocab, model]`."""
    return (self.target_embedding if self.config.share_logits else self.own_output).table

  def output_bias(self) -> jax.Array | None:
    """The output layer's bias, `[vocab]`, if it has one."""
    return self.logits_bias if self.config.logits_bias else None

  def precompute_cross_attention(self, memory: jax.Array, source_valid: jax.Array) -> Memory:
    """The cross-attention keys and values of memory `[source, model]`; `source_valid` `[source]` marks real tokens."""
    return Memory(tuple(map(caching.store, self.decoder.memory_keys_values(memory))), source_valid[None, :])

  def init_cache(self, memory: Memory, max_length: int, beams: int) -> Cache:
    """The cache before the first token.

    Args:
      memory: the source's cross-attention keys and values.
      max_length: the most tokens that will be decoded.
      beams: how many hypotheses are decoded side by side.
    """
    return caching.empty(self.config, memory, max_length, beams)

  def decode_step(
    self, cache: Cache, position: jax.Array, parents: jax.Array, tokens: jax.Array
  ) -> tuple[jax.Array, Cache]:
    """One more token of every hypothesis of one sentence.

    Args:
      cache: the cache after the tokens so far.
      position: the position of this token, from 0; a scalar.
      parents: `[beams]`, which hypothesis of the previous step each one extends.
      tokens: `[beams]`, the decoder's input: BOS (or `config.start`) at position 0, then the chosen tokens.

    Returns:
      `[beams, model]` before the output layer, and the new cache.
    """
    memory = cache.memory
    assert memory is not None
    ancestors = continue_ancestors(cache.ancestors, position, parents)
    self_mask = masking.ancestor_mask(ancestors, position, self.config.attention_window)
    x = self.target_embedding(tokens) + self.target_positions(position[None])
    x = x.astype(self.config.dtype.value)
    x, past = self.decoder.step(x, position, cache.past, memory.keys_values, self_mask, memory.mask)
    return x, Cache(past, memory, ancestors)

  def _restricted(self, mask: jax.Array) -> jax.Array:
    """The mask of self-attention, restricted to `config.attention_window`."""
    window = self.config.attention_window
    if window is None:
      return mask
    query, key = mask.shape
    return masking.combine(mask, masking.window_mask(query, key, window))

  def _layer_input(self, x: jax.Array, deterministic: bool) -> jax.Array:
    """Dropout on the sum of embeddings and positions (§5.4)."""
    return self.embedding_dropout(x.astype(self.config.dtype.value), deterministic=deterministic)
