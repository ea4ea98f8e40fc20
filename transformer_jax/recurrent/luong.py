"""Effective Approaches to Attention-based Neural Machine Translation (Luong et al. 2015), §3.1 and §3.3."""

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.model.attention import WEIGHTS
from transformer_jax.ops.masked_softmax import masked_softmax
from transformer_jax.recurrent.attention import Source, additive_score, context_vector, dot_score
from transformer_jax.recurrent.config import LuongConfig, Score
from transformer_jax.recurrent.encoder_decoder import Memory
from transformer_jax.recurrent.linear import Linear
from transformer_jax.recurrent.recurrence import recurrence, vmap_method
from transformer_jax.recurrent.seq2seq import Stacks
from transformer_jax.recurrent.stack import States, top


class DecoderState(NamedTuple):
  """The decoder's state between two target tokens.

  Attributes:
    layers: the states of the LSTMs.
    attentional: h~ of the last token, `[model]`; at first zeros.
  """

  layers: States
  attentional: jax.Array


class GlobalAttention(nn.Module):
  r"""h~_t = tanh(W_c [c_t; h_t]): c_t is the mean of the source states hs_j with weights softmax(score(h_t, hs_j)).

  score(h_t, hs) = h_t^T hs                      dot
                   h_t^T W_a hs                  general
                   v_a^T tanh(W_a [h_t; hs])     concat

  h_t is a state of the target, and hs the paper's h-bar_s. Bahdanau et al. call the target's state s, the source's h.
  """

  config: LuongConfig

  def setup(self):
    size, dtype = self.config.hidden_size, self.config.dtype
    if self.config.score is not Score.DOT:
      self.key = Linear(size, size, dtype)
    if self.config.score is Score.CONCAT:
      self.query = Linear(size, size, dtype)
      self.v = self.param("v", nn.initializers.normal(size**-0.5), (size,))
    self.combine = Linear(2 * size, self.config.d_model, dtype)

  def source(self, states: jax.Array) -> Source:
    """The states hs_j of the encoder's top layer, `[source, hidden]`, with their keys, `[source, hidden]`."""
    return Source(states, states if self.config.score is Score.DOT else self.key(states))

  def __call__(self, h: jax.Array, source: Source, mask: jax.Array) -> jax.Array:
    """A target state `[hidden]` -> h~ `[model]`, float32; `mask` `[source]` says where it may look."""
    if self.config.score is Score.CONCAT:
      scores = additive_score(self.query(h), source.keys, self.v)
    else:
      scores = dot_score(h, source.keys)
    weights = masked_softmax(scores, mask)
    self.sow("intermediates", WEIGHTS, weights)
    return jnp.tanh(self.combine(jnp.concatenate([context_vector(weights, source.values), h])))


class Luong(Stacks):
  """The encoder and decoder of `seq2seq.py`, with attention after the recurrent update."""

  config: LuongConfig

  def setup(self):
    super().setup()
    config = self.config
    self.attention = GlobalAttention(config)
    if config.input_feeding:
      # The part of the lowest layer's W that multiplies h~, as its input is [x; h~].
      self.input_feeding = Linear(config.d_model, 4 * config.hidden_size, config.dtype, gates=4)

  def write(
    self, x: jax.Array, restarts: jax.Array, memory: States, mask: jax.Array, *, deterministic: bool
  ) -> jax.Array:
    initial, source = self.initial_states(memory, mask), self.attended(memory)
    if self.config.input_feeding:
      attentional = self._token_by_token(x, restarts, initial, source, mask, deterministic)
    else:
      states = self.decoder(x, restarts, initial.layers, deterministic=deterministic)
      of_each = vmap_method(GlobalAttention.__call__, in_axes=(0, None, 0))
      attentional = of_each(self.attention, top(states), source, mask)
    return self.dropout(attentional, deterministic=deterministic)

  def _token_by_token(
    self,
    x: jax.Array,
    restarts: jax.Array,
    initial: DecoderState,
    source: Source,
    mask: jax.Array,
    deterministic: bool,
  ) -> jax.Array:
    """The decoder with input feeding, which runs token by token: `[target, model]` -> h~ `[target, model]`."""

    def advance(model: "Luong", state: DecoderState, at: tuple[jax.Array, jax.Array | None, jax.Array]) -> DecoderState:
      inputs, kept, mask = at
      return model.advance(state, inputs, source, mask, kept)

    kept = self.decoder.dropout_factors(len(x), deterministic=deterministic)
    return recurrence(advance, self, (self.decoder.inputs(x), kept, mask), restarts, initial).attentional

  def advance(
    self, state: DecoderState, inputs: jax.Array, source: Source, mask: jax.Array, kept: jax.Array | None
  ) -> DecoderState:
    """One token; `inputs` is the decoder's `inputs` for it."""
    if self.config.input_feeding:
      inputs = inputs + self.input_feeding(state.attentional)
    layers = self.decoder.advance(state.layers, inputs, kept)
    return DecoderState(layers, self.attention(top(layers), source, mask))

  def initial_states(self, memory: States, mask: jax.Array) -> DecoderState:
    return DecoderState(self.last_states(memory, mask), jnp.zeros((len(mask), self.config.d_model)))

  def attended(self, memory: States) -> Source:
    return self.attention.source(top(memory))

  def step(self, state: DecoderState, embedded: jax.Array, memory: Memory) -> tuple[DecoderState, jax.Array]:
    state = self.advance(state, self.decoder.inputs(embedded), memory.source, memory.mask, None)
    return state, state.attentional
