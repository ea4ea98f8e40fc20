"""Sampling a text token by token, through the same cache as beam search."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from transformer_jax.data.tokenizer import BOS, EOS, PAD, UNK

Params = Any


@dataclasses.dataclass(frozen=True)
class SamplingOptions:
  """How the next token is chosen; each is compiled by itself.

  Attributes:
    temperature: logits are divided by it; 0 always takes the most probable token.
    top_k: choose among so many most probable tokens; 0 is all.
    top_p: choose among the fewest most probable tokens that have this probability together; 1 is all.
  """

  temperature: float = 1.0
  top_k: int = 0
  top_p: float = 1.0


def candidates(logits: jax.Array, options: SamplingOptions) -> jax.Array:
  """Logits from which to sample: divided by the temperature, and -inf where a token may not be chosen.

  PAD, UNK and BOS never may. First the `top_k` largest are kept, then of these the
  fewest that reach `top_p`, so that one is always left (Holtzman et al. 2020). Of
  equal logits the first is taken for the larger.

  Args:
    logits: `[vocab]` float32.
    options: of the sampling.

  Returns:
    `[vocab]` float32.
  """
  logits = logits.at[jnp.array([PAD, UNK, BOS])].set(-jnp.inf)
  keep = 1 if options.temperature == 0 else min(options.top_k or len(logits), len(logits))
  # The largest becomes 0 and stays it, however low the temperature; a lower one would be 0 itself in float32.
  logits = (logits - jnp.max(logits)) / max(options.temperature or 1.0, 1e-30)
  order = jnp.argsort(-logits, stable=True)
  kept = jnp.where(jnp.arange(len(logits)) < keep, logits[order], -jnp.inf)
  probabilities = jax.nn.softmax(kept)
  before = jnp.cumsum(probabilities) - probabilities
  if options.top_p < 1:  # a sum of many probabilities can be 1 before the last of them
    kept = jnp.where((before < options.top_p) | (jnp.arange(len(logits)) == 0), kept, -jnp.inf)
  return jnp.full_like(logits, -jnp.inf).at[order].set(kept)


def sample(
  model: Any, options: SamplingOptions, length: int, params: Params, prompt: jax.Array, size: jax.Array, key: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """One text that begins with a prompt.

  Args:
    model: with `start`, `decode_step` and `logits`.
    options: of the sampling.
    length: places for tokens, those of the prompt included.
    params: the model's parameters.
    prompt: `[length]` int32, of which the first tokens count.
    size: of the prompt and what is to follow: two scalars, tokens of the prompt and of the whole at most.
    key: of the random choices; the choice of each place has its own.

  Returns:
    Tokens `[length]`, and how many there are: all that was asked for, or up to an EOS, which counts.
  """
  variables = {"params": params}
  prompt_size, whole = size

  def unfinished(state: Any) -> jax.Array:
    _, tokens, place, _ = state
    ended = (place > prompt_size) & (tokens[place - 1] == EOS)
    return (place < whole) & ~ended

  def advance(state: Any) -> Any:
    cache, tokens, place, last = state
    hidden, cache = model.apply(variables, cache, place, jnp.zeros(1, jnp.int32), last, method="decode_step")
    logits = model.apply(variables, hidden[0], method="logits")
    chosen = jax.random.categorical(jax.random.fold_in(key, place), candidates(logits, options))
    token = jnp.where(place < prompt_size, prompt[place], chosen).astype(jnp.int32)
    return cache, tokens.at[place].set(token), place + 1, token[None]

  cache = model.apply(variables, length, 1, method="init_cache")
  start = cache, jnp.full(length, PAD, jnp.int32), jnp.int32(0), jnp.full(1, BOS, jnp.int32)
  _, tokens, count, _ = jax.lax.while_loop(unfinished, advance, start)
  return tokens, count
