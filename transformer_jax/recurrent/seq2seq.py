"""Sequence to Sequence Learning with Neural Networks (Sutskever et al. 2014): one state holds the whole source.

By option each step of the decoder reads this state as well (Cho et al. 2014).
"""

from typing import Any

import jax
import jax.numpy as jnp

from transformer_jax.recurrent.config import SequenceToSequenceConfig
from transformer_jax.recurrent.encoder_decoder import EncoderDecoder, Memory
from transformer_jax.recurrent.linear import Linear
from transformer_jax.recurrent.recurrence import begins, last_read, take
from transformer_jax.recurrent.stack import Stack, States, top


class Stacks(EncoderDecoder):
  """The base of models with two stacks: one reads the source, the other writes the target."""

  config: Any  # one with `num_layers`, `reverse_source`, `cell` and `feed_context`

  def setup(self):
    super().setup()
    config = self.config
    sizes = config.hidden_size, config.num_layers, config.dropout, config.dtype, config.cell
    self.encoder = Stack(config.d_model, *sizes)
    self.decoder = Stack(config.d_model + self.context_size, *sizes)

  @property
  def context_size(self) -> int:
    """The width of the context that each step of the decoder reads; 0 if it reads none."""
    return self.config.hidden_size if self.config.feed_context else 0

  def encode(self, source: jax.Array, positions: jax.Array, mask: jax.Array, *, deterministic: bool = True) -> States:
    reverse = self.config.reverse_source
    x = self.embed_source(source, deterministic=deterministic)
    return self.encoder(x, begins(positions, mask, reverse=reverse), reverse=reverse, deterministic=deterministic)

  def last_states(self, memory: States, mask: jax.Array) -> States:
    """The encoder's states when it has read what each query may look at: mask `[query, source]`."""
    return take(memory, last_read(mask, reverse=self.config.reverse_source))


class SequenceToSequence(Stacks):
  """One stack reads the source; another begins with its last state and writes the target."""

  config: SequenceToSequenceConfig

  def setup(self):
    super().setup()
    self.output = Linear(self.config.hidden_size + self.context_size, self.config.d_model, self.config.dtype)

  def write(
    self, x: jax.Array, restarts: jax.Array, memory: States, mask: jax.Array, *, deterministic: bool
  ) -> jax.Array:
    initial = self.initial_states(memory, mask)
    context = self.context(initial, deterministic=deterministic)
    states = self.decoder(_beside(x, context), restarts, initial, deterministic=deterministic)
    return self.output(_beside(self.dropout(top(states), deterministic=deterministic), context))

  def context(self, initial: States, *, deterministic: bool) -> jax.Array | None:
    """c, the encoder's last output, if each step of the decoder reads it: `[..., hidden]`."""
    return self.dropout(top(initial), deterministic=deterministic) if self.config.feed_context else None

  def initial_states(self, memory: States, mask: jax.Array) -> States:
    return self.last_states(memory, mask)

  def step(self, state: States, embedded: jax.Array, memory: Memory) -> tuple[States, jax.Array]:
    context = self.context(memory.initial, deterministic=True)
    state = self.decoder.advance(state, self.decoder.inputs(_beside(embedded, context)))
    return state, self.output(_beside(top(state), context))


def _beside(x: jax.Array, context: jax.Array | None) -> jax.Array:
  """[x; c], or x if there is no context."""
  return x if context is None else jnp.concatenate([x, context], axis=-1)
