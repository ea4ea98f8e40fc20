"""The base class of the recurrent models that translate."""

from typing import Any, NamedTuple

import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp

from transformer_jax.model import masking
from transformer_jax.model.dropout import Dropout
from transformer_jax.model.embedding import Embedding, output_logits
from transformer_jax.model.positional_encoding import from_zero
from transformer_jax.model.special_tokens import BOS, PAD
from transformer_jax.ops.categorical import categorical
from transformer_jax.recurrent.recurrence import recurrence, take, vmap_method, where
from transformer_jax.runtime.values import PyTree

# Trees of arrays; each model has its own.
Encoded = PyTree  # what its `encode` gives, arrays `[source, ...]`
State = PyTree  # of its decoder


class Memory(NamedTuple):
  """The decoder's view of one source sentence.

  Attributes:
    initial: the decoder's state before its first token.
    source: the source as attention needs it, arrays `[source, ...]`; empty without attention.
    mask: `[source]`, true at real tokens.
  """

  initial: State
  source: Encoded
  mask: jax.Array


@flax.struct.dataclass
class Cache:
  """The decoding cache of one sentence.

  Attributes:
    state: the decoder's state of each hypothesis, arrays `[beams, ...]`.
    memory: the decoder's view of the source.
  """

  state: State
  memory: Memory


class EncoderDecoder(nn.Module):
  """A recurrent model with the methods of `model.transformer.Transformer`, which documents them.

  A subclass has `encode`, `write`, `initial_states`, `step`, which advances the
  decoder by one token, and, with attention, `attended`.
  """

  config: Any  # a RecurrentConfig; each model has its own

  def setup(self):
    self.embedding = Embedding(self.config)
    if self.config.source_vocab_size is not None:
      self.own_source_embedding = Embedding(self.config, of_source=True)
    self.dropout = Dropout(self.config.dropout)

  def encode(self, source: jax.Array, positions: jax.Array, mask: jax.Array, *, deterministic: bool = True) -> Encoded:
    """Tokens `[source]`, positions `[source]`, mask `[source, source]` -> states, arrays `[source, ...]`."""
    raise NotImplementedError

  def decode(
    self,
    target: jax.Array,
    positions: jax.Array,
    memory: Encoded,
    self_mask: jax.Array,
    cross_mask: jax.Array,
    *,
    deterministic: bool = True,
  ) -> jax.Array:
    """Tokens `[target]` behind BOS, and the result of `encode` -> `[target, model]`.

    `self_mask` is not used: a sentence begins at position 0, and a recurrent
    model never sees later tokens.
    """
    x = self.embed(target, deterministic=deterministic)
    return self.write(x, positions == 0, memory, cross_mask, deterministic=deterministic)

  def write(
    self, x: jax.Array, restarts: jax.Array, memory: Encoded, mask: jax.Array, *, deterministic: bool
  ) -> jax.Array:
    """`decode` of the embedded target `[target, model]`; `restarts` `[target]` marks each sentence's first token."""
    raise NotImplementedError

  def initial_states(self, memory: Encoded, mask: jax.Array) -> State:
    """The decoder's state before its first token, for each query: mask `[query, source]` -> arrays `[query, ...]`."""
    raise NotImplementedError

  def attended(self, memory: Encoded) -> Encoded:
    """The result of `encode` as attention needs it, arrays `[source, ...]`; empty without attention."""
    return ()

  def precompute_cross_attention(self, memory: Encoded, source_valid: jax.Array) -> Memory:
    """The decoder's view of the result of `encode`; `source_valid` `[source]` marks real tokens."""
    initial = take(self.initial_states(memory, source_valid[None]), jnp.int32(0))
    return Memory(initial, self.attended(memory), source_valid)

  def step(self, state: State, embedded: jax.Array, memory: Memory) -> tuple[State, jax.Array]:
    """One more token `[model]` of one hypothesis -> the new state, and `[model]` before the output layer."""
    raise NotImplementedError

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
    """A sentence pair, or a packed row of several -> `[target, model]`, the input of `logits`."""
    source_positions, target_positions = from_zero(source, source_positions), from_zero(target, target_positions)
    source_mask, target_mask, cross_mask = masking.for_pair(source, target, source_mask, target_mask, cross_mask)
    memory = self.encode(source, source_positions, source_mask, deterministic=deterministic)
    return self.decode(target, target_positions, memory, target_mask, cross_mask, deterministic=deterministic)

  def embed_source(self, tokens: jax.Array, *, deterministic: bool) -> jax.Array:
    """Tokens of the source, `[length]` -> `[length, model]`."""
    embedding = self.embedding if self.config.source_vocab_size is None else self.own_source_embedding
    return self.dropout(embedding(tokens), deterministic=deterministic)

  def embed(self, tokens: jax.Array, *, deterministic: bool) -> jax.Array:
    """Tokens of the target, `[length]` -> `[length, model]`."""
    return self.dropout(self.embedding(tokens), deterministic=deterministic)

  def logits(self, hidden: jax.Array) -> jax.Array:
    """`[..., model]` -> float32 `[..., vocab]`."""
    return output_logits(self.output_table(), hidden, self.config.dtype.value)

  def output_table(self) -> jax.Array:
    """The output layer's table, which is the embedding's: `[vocab, model]`."""
    return self.embedding.table

  def choose_inputs(
    self,
    source: jax.Array,
    target: jax.Array,
    source_positions: jax.Array,
    target_positions: jax.Array,
    source_mask: jax.Array,
    cross_mask: jax.Array,
    forced: jax.Array,
    uniform: jax.Array,
  ) -> jax.Array:
    """The decoder's input of a packed row in scheduled sampling (Bengio et al. 2015), `[target]` int32.

    Each token is that of `target`, or the one that the model draws after the token before. There is no dropout, as
    there is none when the model translates. The other arguments are as in `__call__`.

    Args:
      forced: `[target]` booleans, whether the input is that of `target`; it always is at a sentence's first position.
      uniform: `[target]` numbers from [0, 1), by which the tokens are drawn.
    """
    encoded = self.encode(source, source_positions, source_mask)
    initials, attended = self.initial_states(encoded, cross_mask), self.attended(encoded)
    restarts = target_positions == 0
    forced = forced | restarts

    def advance(model: "EncoderDecoder", before: tuple[State, jax.Array], at: PyTree) -> tuple[State, jax.Array]:
      (state, own), (target, forced, uniform, initial, mask) = before, at
      embedded = model.embed(jnp.where(forced, target, own), deterministic=True)
      state, hidden = model.step(state, embedded, Memory(initial, attended, mask))
      # No output has PAD or BOS.
      return state, categorical(model.logits(hidden).at[jnp.array([PAD, BOS])].set(-jnp.inf), uniform)

    inputs = target, forced, uniform, initials, cross_mask
    _, own = recurrence(advance, self, inputs, restarts, (initials, target))
    return jnp.where(forced, target, jnp.roll(own, 1))

  def init_cache(self, memory: Memory, max_length: int, beams: int) -> Cache:
    """The cache before the first token; a state does not grow with `max_length`."""
    return Cache(jax.tree.map(lambda x: jnp.zeros((beams, *x.shape), x.dtype), memory.initial), memory)

  def decode_step(
    self, cache: Cache, position: jax.Array, parents: jax.Array, tokens: jax.Array
  ) -> tuple[jax.Array, Cache]:
    """One more token of every hypothesis: `[beams, model]` before the output layer, and the new cache."""
    past = take(cache.state, parents)
    initial = jax.tree.map(lambda x, y: jnp.broadcast_to(x, y.shape), cache.memory.initial, past)
    step = vmap_method(type(self).step, in_axes=(0, 0, None))
    state = where(position == 0, initial, past)
    state, hidden = step(self, state, self.embed(tokens, deterministic=True), cache.memory)
    return hidden, Cache(state, cache.memory)
