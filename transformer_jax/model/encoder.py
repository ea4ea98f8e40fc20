"""The encoder (§3.1; Figure 1, left): N layers of self-attention and feed-forward."""

import flax.linen as nn
import jax

from transformer_jax.model.attention import MultiHeadAttention
from transformer_jax.model.config import ModelConfig, Remat
from transformer_jax.model.feed_forward import FeedForward
from transformer_jax.model.sublayer import Sublayer, layer_norm


class EncoderLayer(nn.Module):
  """Self-attention, then feed-forward."""

  config: ModelConfig
  attention_class = MultiHeadAttention

  def setup(self):
    self.attention = self.attention_class(self.config)
    self.attention_sublayer = Sublayer(self.config)
    self.feed_forward = FeedForward(self.config)
    self.feed_forward_sublayer = Sublayer(self.config)

  def __call__(self, x: jax.Array, mask: jax.Array, *, deterministic: bool) -> jax.Array:
    def attend(x: jax.Array) -> jax.Array:
      return self.attention(x, x, mask, deterministic=deterministic)

    x = self.attention_sublayer(x, attend, deterministic=deterministic)
    return self.feed_forward_sublayer(x, self.feed_forward, deterministic=deterministic)


class Encoder(nn.Module):
  """The stack of layers: `[source, model]`, mask `[source, source]` -> memory `[source, model]`."""

  config: ModelConfig
  layer_class = EncoderLayer

  def setup(self):
    self.layers = [self.layer_class(self.config) for _ in range(self.config.encoder_depth)]
    if self.config.pre_norm:
      self.norm = layer_norm(self.config)

  def __call__(self, x: jax.Array, mask: jax.Array, *, deterministic: bool) -> jax.Array:
    def apply(layer: EncoderLayer, x: jax.Array) -> jax.Array:
      return layer(x, mask, deterministic=deterministic)

    apply_layer = nn.remat(apply) if self.config.remat is Remat.LAYER else apply
    for layer in self.layers:
      x = apply_layer(layer, x)
    return self.norm(x) if self.config.pre_norm else x
