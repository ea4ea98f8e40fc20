"""Neural Machine Translation by Jointly Learning to Align and Translate (Bahdanau et al. 2015), §3 and appendix A."""

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.model.attention import WEIGHTS
from transformer_jax.ops.masked_softmax import masked_softmax
from transformer_jax.recurrent.attention import Source, additive_score, context_vector
from transformer_jax.recurrent.config import BahdanauConfig
from transformer_jax.recurrent.encoder_decoder import EncoderDecoder, Memory
from transformer_jax.recurrent.gru import GRU
from transformer_jax.recurrent.linear import Linear
from transformer_jax.recurrent.recurrence import begins, last_read, recurrence


class DecoderState(NamedTuple):
  """The decoder's state between two target tokens.

  Attributes:
    s: the recurrent state, `[hidden]`.
    context: c of the last token, `[2 hidden]`, an input of the output layer.
  """

  s: jax.Array
  context: jax.Array


class Alignment(nn.Module):
  """e_ij = v_a^T tanh(W_a s_(i-1) + U_a h_j), and the context c_i = sum_j softmax(e_i)_j h_j (A.1.2)."""

  config: BahdanauConfig

  def setup(self):
    config = self.config
    self.query = Linear(config.hidden_size, config.attention_size, config.dtype)
    self.key = Linear(2 * config.hidden_size, config.attention_size, config.dtype)
    self.v = self.param("v", nn.initializers.normal(config.attention_size**-0.5), (config.attention_size,))

  def source(self, annotations: jax.Array) -> Source:
    """The annotations h_j, `[source, 2 hidden]`, with their keys U_a h_j, `[source, attention]`."""
    return Source(annotations, self.key(annotations))

  def __call__(self, s: jax.Array, source: Source, mask: jax.Array) -> jax.Array:
    """s_(i-1) `[hidden]` -> c_i `[2 hidden]`; `mask` `[source]` says where it may look."""
    weights = masked_softmax(additive_score(self.query(s), source.keys, self.v), mask)
    self.sow("intermediates", WEIGHTS, weights)
    return context_vector(weights, source.values)


class DeepOutput(nn.Module):
  """A maxout layer (Goodfellow et al. 2013): t_i = max over pairs of U_o s_i + V_o E y_(i-1) + C_o c_i (A.2.2).

  It uses s_i, as in eq. 4 and in the literature; the appendix prints s_(i-1).
  """

  config: BahdanauConfig

  def setup(self):
    config = self.config
    inputs = config.hidden_size + config.d_model + 2 * config.hidden_size
    self.linear = Linear(inputs, 2 * config.d_model, config.dtype, use_bias=True)

  def __call__(self, state: DecoderState, embedded: jax.Array) -> jax.Array:
    """`[..., hidden]`, `[..., 2 hidden]` and `[..., model]` -> `[..., model]`."""
    pairs = self.linear(jnp.concatenate([state.s, embedded, state.context], axis=-1))
    return jnp.max(pairs.reshape(*pairs.shape[:-1], -1, 2), axis=-1)


class Bahdanau(EncoderDecoder):
  """RNNsearch: a bidirectional encoder, and a decoder that looks at all of the source before each update."""

  config: BahdanauConfig

  def setup(self):
    super().setup()
    config = self.config
    d, hidden, dtype = config.d_model, config.hidden_size, config.dtype
    self.encoder_forward = GRU(d, hidden, dtype)
    self.encoder_backward = GRU(d, hidden, dtype)
    self.initial = Linear(hidden, hidden, dtype)  # W_s
    self.alignment = Alignment(config)
    self.decoder = GRU(d, hidden, dtype)
    # The context's part of the gates and the proposal: C_z, C_r and C side by side.
    self.context = Linear(2 * hidden, 3 * hidden, dtype, gates=3)
    self.output = DeepOutput(config)

  def encode(
    self, source: jax.Array, positions: jax.Array, mask: jax.Array, *, deterministic: bool = True
  ) -> jax.Array:
    """The annotations, `[source, 2 hidden]`: the states read from the left, beside those read from the right."""
    x = self.embed_source(source, deterministic=deterministic)
    return jnp.concatenate(
      [
        self.encoder_forward(x, begins(positions, mask, reverse=False)),
        self.encoder_backward(x, begins(positions, mask, reverse=True), reverse=True),
      ],
      axis=-1,
    )

  def write(
    self, x: jax.Array, restarts: jax.Array, memory: jax.Array, mask: jax.Array, *, deterministic: bool
  ) -> jax.Array:
    source = self.attended(memory)

    def advance(model: "Bahdanau", state: DecoderState, at: tuple[jax.Array, jax.Array]) -> DecoderState:
      inputs, mask = at
      return model.advance(state, inputs, source, mask)

    initial = self.initial_states(memory, mask)
    states = recurrence(advance, self, (self.decoder.inputs(x), mask), restarts, initial)
    return self.dropout(self.output(states, x), deterministic=deterministic)

  def advance(self, state: DecoderState, inputs: jax.Array, source: Source, mask: jax.Array) -> DecoderState:
    """One token; `inputs` is the decoder's `inputs` for it."""
    c = self.alignment(state.s, source, mask)
    return DecoderState(self.decoder.advance(state.s, inputs + self.context(c)), c)

  def initial_states(self, memory: jax.Array, mask: jax.Array) -> DecoderState:
    """s_0 = tanh(W_s h_1), with h_1 read from the right: mask `[query, source]` -> a state for each query."""
    backward = memory[last_read(mask, reverse=True), self.config.hidden_size :]
    return DecoderState(jnp.tanh(self.initial(backward)), jnp.zeros((len(mask), memory.shape[1])))

  def attended(self, memory: jax.Array) -> Source:
    return self.alignment.source(memory)

  def step(self, state: DecoderState, embedded: jax.Array, memory: Memory) -> tuple[DecoderState, jax.Array]:
    state = self.advance(state, self.decoder.inputs(embedded), memory.source, memory.mask)
    return state, self.output(state, embedded)
