"""The decoder (§3.1; Figure 1, right): N layers of masked self-attention, attention over the encoder, feed-forward."""

import flax.linen as nn
import jax

from transformer_jax.model import cache as caching
from transformer_jax.model.attention import MultiHeadAttention
from transformer_jax.model.cache import KeysValues, Stored
from transformer_jax.model.config import ModelConfig, Remat
from transformer_jax.model.feed_forward import FeedForward
from transformer_jax.model.sublayer import Sublayer, layer_norm


class DecoderLayer(nn.Module):
  """Masked self-attention, attention over the encoder's output, feed-forward.

  Without an encoder there are no `memory_keys_values`, and the layer has no parameters of attention over its output.
  """

  config: ModelConfig
  attention_class = MultiHeadAttention

  def setup(self):
    self.self_attention = self.attention_class(self.config)
    self.self_sublayer = Sublayer(self.config)
    self.cross_attention = self.attention_class(self.config)
    self.cross_sublayer = Sublayer(self.config)
    self.feed_forward = FeedForward(self.config)
    self.feed_forward_sublayer = Sublayer(self.config)

  def __call__(
    self,
    x: jax.Array,
    memory_keys_values: KeysValues | None,
    self_mask: jax.Array,
    cross_mask: jax.Array | None,
    *,
    deterministic: bool,
  ) -> jax.Array:
    """All positions at once: `[target, model]` -> `[target, model]`."""

    def attend(x: jax.Array) -> jax.Array:
      return self.self_attention(x, x, self_mask, deterministic=deterministic)

    x = self.self_sublayer(x, attend, deterministic=deterministic)
    return self.after_self_attention(x, memory_keys_values, cross_mask, deterministic=deterministic)

  def step(
    self,
    x: jax.Array,
    position: jax.Array,
    past: Stored,
    memory_keys_values: Stored | None,
    self_mask: jax.Array,
    cross_mask: jax.Array | None,
  ) -> tuple[jax.Array, Stored]:
    """The newest position of each hypothesis: `[beams, model]` -> `[beams, model]`, and the past with this position."""
    query = self.self_sublayer.input(x)
    past = caching.append(past, position, self.self_attention.keys_values(query))
    attended = self.self_attention.attend(query, *caching.load(past), self_mask, deterministic=True)
    x = self.self_sublayer.output(x, attended, deterministic=True)
    loaded = None if memory_keys_values is None else caching.load(memory_keys_values)
    return self.after_self_attention(x, loaded, cross_mask, deterministic=True), past

  def after_self_attention(
    self, x: jax.Array, memory_keys_values: KeysValues | None, cross_mask: jax.Array | None, *, deterministic: bool
  ) -> jax.Array:
    if memory_keys_values is not None and cross_mask is not None:
      keys, values = memory_keys_values

      def attend(x: jax.Array) -> jax.Array:
        return self.cross_attention.attend(x, keys, values, cross_mask, deterministic=deterministic)

      x = self.cross_sublayer(x, attend, deterministic=deterministic)
    return self.feed_forward_sublayer(x, self.feed_forward, deterministic=deterministic)


class Decoder(nn.Module):
  """The stack of layers, for all positions at once (`__call__`) or for one more (`step`)."""

  config: ModelConfig
  layer_class = DecoderLayer

  def setup(self):
    self.layers = [self.layer_class(self.config) for _ in range(self.config.decoder_depth)]
    if self.config.pre_norm:
      self.norm = layer_norm(self.config)

  def __call__(
    self,
    x: jax.Array,
    memory: jax.Array | None,
    self_mask: jax.Array,
    cross_mask: jax.Array | None,
    *,
    deterministic: bool,
  ) -> jax.Array:
    """`[target, model]` over memory `[source, model]`, None without an encoder -> `[target, model]`."""

    def apply(layer: DecoderLayer, x: jax.Array, memory: jax.Array | None) -> jax.Array:
      keys_values = None if memory is None else layer.cross_attention.keys_values(memory)
      return layer(x, keys_values, self_mask, cross_mask, deterministic=deterministic)

    apply_layer = nn.remat(apply) if self.config.remat is Remat.LAYER else apply
    for layer in self.layers:
      x = apply_layer(layer, x, memory)
    return self.norm(x) if self.config.pre_norm else x

  def step(
    self,
    x: jax.Array,
    position: jax.Array,
    past: tuple[Stored, ...],
    memory_keys_values: tuple[Stored, ...] | None,
    self_mask: jax.Array,
    cross_mask: jax.Array | None,
  ) -> tuple[jax.Array, tuple[Stored, ...]]:
    """The newest position of each hypothesis: `[beams, model]` -> `[beams, model]`, and each layer's past with it."""
    new_past = []
    of_each = [None] * len(self.layers) if memory_keys_values is None else memory_keys_values
    for layer, layer_past, keys_values in zip(self.layers, past, of_each, strict=True):
      x, layer_past = layer.step(x, position, layer_past, keys_values, self_mask, cross_mask)
      new_past.append(layer_past)
    return self.norm(x) if self.config.pre_norm else x, tuple(new_past)

  def memory_keys_values(self, memory: jax.Array) -> tuple[KeysValues, ...]:
    """Each layer's cross-attention keys and values of memory `[source, model]`."""
    return tuple(layer.cross_attention.keys_values(memory) for layer in self.layers)
