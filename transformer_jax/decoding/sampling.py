"""Sampling of a text, token by token, with the same cache as beam search."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from transformer_jax.model.params import Params
from transformer_jax.model.special_tokens import PAD
from transformer_jax.ops.categorical import categorical
from transformer_jax.ops.top_k import top_k
from transformer_jax.runtime.errors import require_option, require_whole
from transformer_jax.runtime.values import PyTree

# A higher one could be infinite in float32, and -inf divided by it is no number.
_MOST_TEMPERATURE = 1e30


@dataclasses.dataclass(frozen=True)
class SamplingOptions:
  """The options of sampling; each combination is compiled separately.

  Attributes:
    temperature: divides the logits; 0 always takes the most probable token.
    top_k: sample from this many most probable tokens; 0 is all.
    top_p: sample from the fewest most probable tokens whose total probability reaches this; 1 is all.
    suppressed: tokens that are never chosen. `Translator` adds those that no translation has.

  Raises:
    InputError: a value is out of range.
  """

  temperature: float = 1.0
  top_k: int = 0
  top_p: float = 1.0
  suppressed: tuple[int, ...] = ()

  def __post_init__(self) -> None:
    fits = 0 <= self.temperature <= _MOST_TEMPERATURE
    require_option("temperature", self.temperature, fits, f"from 0 to {_MOST_TEMPERATURE:g}")
    require_whole("top_k", self.top_k)
    require_option("top_k", self.top_k, self.top_k >= 0, "0 or more")
    require_option("top_p", self.top_p, 0 < self.top_p <= 1, "above 0 and at most 1")


def require_seed(seed: int) -> None:
  """Raises InputError unless a number can be the seed of the random choices."""
  require_whole("seed", seed)
  require_option("seed", seed, 0 <= seed < 2**32, "0 or more, and below 2 ** 32")


def key_of(seed: jax.Array | int) -> jax.Array:
  """The random key of a seed.

  Its generator is Threefry, whatever JAX was told to take: of others, such as `rbg`, the numbers of one row would
  depend on the rows beside it.
  """
  return jax.random.key(seed, impl="threefry2x32")


def candidates(logits: jax.Array, options: SamplingOptions) -> jax.Array:
  """The logits to sample from: divided by the temperature, and -inf where a token may not be chosen.

  The tokens `options.suppressed` are never chosen. Of the others the `top_k` with the largest logits are kept, and of
  these the fewest that reach `top_p` (Holtzman et al. 2020). One is always kept. Of equal logits the first counts as
  the larger.

  Args:
    logits: `[vocab]` float32.
    options: the options of sampling.

  Returns:
    `[vocab]` float32.
  """
  logits = logits.at[jnp.array(options.suppressed, jnp.int32)].set(-jnp.inf) if options.suppressed else logits
  keep = 1 if options.temperature == 0 else min(options.top_k or len(logits), len(logits))
  # With the largest at 0 no temperature overflows it. A temperature below 1e-30 could be 0 in float32.
  logits = (logits - jnp.max(logits)) / max(options.temperature or 1.0, 1e-30)
  if options.top_p >= 1:
    return logits if keep == len(logits) else _largest(logits, keep)
  order = jnp.argsort(-logits, stable=True)
  kept = jnp.where(jnp.arange(len(logits)) < keep, logits[order], -jnp.inf)
  probabilities = jax.nn.softmax(kept)
  before = jnp.cumsum(probabilities) - probabilities
  kept = jnp.where((before < options.top_p) | (jnp.arange(len(logits)) == 0), kept, -jnp.inf)
  return jnp.full_like(logits, -jnp.inf).at[order].set(kept)


def _largest(logits: jax.Array, count: int) -> jax.Array:
  """The `count` largest logits in their places, and -inf elsewhere."""
  kept, places = top_k(logits, count)
  return jnp.full_like(logits, -jnp.inf).at[places].set(kept)


def sample(
  model: Any, options: SamplingOptions, length: int, params: Params, prompt: jax.Array, size: jax.Array, key: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Samples one text that begins with a prompt.

  Args:
    model: a language model with `config`, `init_cache`, `decode_step` and `logits`.
    options: the options of sampling.
    length: the length of the result, which has room for the prompt, too.
    params: the model's parameters.
    prompt: `[length]` int32, the prompt's tokens, then anything.
    size: two scalars, the number of the prompt's tokens and the most tokens of the whole text.
    key: the random key; the key of each position is derived from it.

  Returns:
    Tokens `[length]`; their number, the most, or fewer if the text ends with EOS, which counts; and whether all logits
    on the way had a finite maximum, as those of NaN do not.
  """
  variables = {"params": params}
  prompt_size, most = size

  def unfinished(state: PyTree) -> jax.Array:
    _, tokens, position, _, _ = state
    ended = (position > prompt_size) & (tokens[position - 1] == model.config.end_token)
    return (position < most) & ~ended

  def advance(state: PyTree) -> PyTree:
    cache, tokens, position, last, finite = state
    hidden, cache = model.apply(variables, cache, position, jnp.zeros(1, jnp.int32), last, method="decode_step")
    logits = model.apply(variables, hidden[0], method="logits")
    chosen = categorical(candidates(logits, options), jax.random.uniform(jax.random.fold_in(key, position)))
    token = jnp.where(position < prompt_size, prompt[position], chosen).astype(jnp.int32)
    return cache, tokens.at[position].set(token), position + 1, token[None], finite & jnp.isfinite(jnp.max(logits))

  cache = model.apply(variables, length, 1, method="init_cache")
  tokens, last = jnp.full(length, PAD, jnp.int32), jnp.full(1, model.config.start_token, jnp.int32)
  start = cache, tokens, jnp.int32(0), last, jnp.bool_(True)
  _, tokens, count, _, finite = jax.lax.while_loop(unfinished, advance, start)
  return tokens, count, finite
