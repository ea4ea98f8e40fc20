"""GPT (Radford et al. 2018): the Transformer's decoder alone; it predicts each token from the tokens before it."""

import flax.linen as nn
import jax

from transformer_jax.language.config import GPTConfig
from transformer_jax.language.embedding import LearnedEmbedding
from transformer_jax.model import cache as caching
from transformer_jax.model import masking
from transformer_jax.model.cache import Cache, continue_ancestors
from transformer_jax.model.decoder import Decoder
from transformer_jax.model.dropout import Dropout
from transformer_jax.model.embedding import output_logits


class GPT(nn.Module):
  """h_0 = U W_e + W_p, h_l = transformer_block(h_(l-1)), P(u) = softmax(h_n W_e^T).

  As in the Transformer no method has a batch axis, and dropout takes its keys from the "dropout" stream.
  """

  config: GPTConfig

  def setup(self):
    config = self.config
    self.embedding = LearnedEmbedding(config.vocab_size, config.d_model)
    self.positions = LearnedEmbedding(config.max_positions, config.d_model)
    self.embedding_dropout = Dropout(config.dropout)
    self.decoder = Decoder(config.blocks)

  def __call__(
    self, tokens: jax.Array, positions: jax.Array, mask: jax.Array, *, deterministic: bool = True
  ) -> jax.Array:
    """All positions at once.

    Args:
      tokens: `[length]` int32, BOS and the text without its last token.
      positions: `[length]`, from 0 in each text.
      mask: `[length, length]`, causal.
      deterministic: whether dropout is off.

    Returns:
      `[length, model]`, the input of `logits`.
    """
    x = self.embedding_dropout(self._embed(tokens, positions), deterministic=deterministic)
    return self.decoder(x, None, mask, None, deterministic=deterministic)

  def logits(self, hidden: jax.Array) -> jax.Array:
    """`[..., model]` -> float32 `[..., vocab]`."""
    return output_logits(self.output_table(), hidden, self.config.dtype.value)

  def output_table(self) -> jax.Array:
    """The output layer's table, which is the embedding's: `[vocab, model]`."""
    return self.embedding.table

  def init_cache(self, max_length: int, beams: int) -> Cache:
    """The cache before the first of at most `max_length` tokens."""
    return caching.empty(self.config.blocks, None, max_length, beams)

  def decode_step(
    self, cache: Cache, position: jax.Array, parents: jax.Array, tokens: jax.Array
  ) -> tuple[jax.Array, Cache]:
    """One more token of every hypothesis, like `Transformer.decode_step`: `[beams]` -> `[beams, model]`."""
    ancestors = continue_ancestors(cache.ancestors, position, parents)
    mask = masking.ancestor_mask(ancestors, position)
    x, past = self.decoder.step(self._embed(tokens, position[None]), position, cache.past, None, mask, None)
    return x, Cache(past, None, ancestors)

  def _embed(self, tokens: jax.Array, positions: jax.Array) -> jax.Array:
    return (self.embedding(tokens) + self.positions(positions)).astype(self.config.dtype.value)
