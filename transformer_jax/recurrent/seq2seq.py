"""Sequence to Sequence Learning with Neural Networks (Sutskever et al. 2014): one state holds the whole source."""

from typing import Any

import jax

from transformer_jax.recurrent.config import SequenceToSequenceConfig
from transformer_jax.recurrent.encoder_decoder import EncoderDecoder, Memory
from transformer_jax.recurrent.linear import Linear
from transformer_jax.recurrent.recurrence import begins, last_read, take
from transformer_jax.recurrent.stack import Stack, States


class Stacks(EncoderDecoder):
  """The base of models with two stacks of LSTMs: one reads the source, the other writes the target."""

  config: Any  # one with `num_layers` and `reverse_source`

  def setup(self):
    super().setup()
    config = self.config
    sizes = config.d_model, config.hidden_size, config.num_layers, config.dropout, config.dtype
    self.encoder = Stack(*sizes)
    self.decoder = Stack(*sizes)

  def encode(self, source: jax.Array, positions: jax.Array, mask: jax.Array, *, deterministic: bool = True) -> States:
    reverse = self.config.reverse_source
    x = self.embed(source, deterministic=deterministic)
    return self.encoder(x, begins(positions, mask, reverse=reverse), reverse=reverse, deterministic=deterministic)


class SequenceToSequence(Stacks):
  """One stack of LSTMs reads the source; another begins with its last state and writes the target."""

  config: SequenceToSequenceConfig

  def setup(self):
    super().setup()
    self.output = Linear(self.config.hidden_size, self.config.d_model, self.config.dtype)

  def decode(
    self,
    target: jax.Array,
    positions: jax.Array,
    memory: States,
    self_mask: jax.Array,
    cross_mask: jax.Array,
    *,
    deterministic: bool = True,
  ) -> jax.Array:
    initial = take(memory, last_read(cross_mask, reverse=self.config.reverse_source))
    x = self.embed(target, deterministic=deterministic)
    states = self.decoder(x, positions == 0, initial, deterministic=deterministic)
    return self.output(self.dropout(states[-1].hidden, deterministic=deterministic))

  def precompute_cross_attention(self, memory: States, source_valid: jax.Array) -> Memory:
    [index] = last_read(source_valid[None], reverse=self.config.reverse_source)
    return Memory(take(memory, index), (), source_valid)

  def step(self, state: States, embedded: jax.Array, memory: Memory) -> tuple[States, jax.Array]:
    state = self.decoder.advance(state, self.decoder.inputs(embedded))
    return state, self.output(state[-1].hidden)
