"""Choices made outside of the search: if the next token of an output is forced or drawn, the search takes that token.

Every other token gets the log-probability -inf, so `decoding/beam_search.py` need not know of choices. A drawn output
is a search with one hypothesis. Its log-probability is the model's, whatever the temperature is.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax.decoding.sampling import SamplingOptions, candidates, key_of
from transformer_jax.model.special_tokens import EOS, PAD
from transformer_jax.ops.categorical import categorical

# restrict(log_probs, sentence, position) -> log_probs; see `restriction`.
Restrict = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


class Choices(NamedTuple):
  """What is chosen for the outputs of a batch.

  Attributes:
    prefixes: `[sentences, tokens]` int32, the tokens with which each output begins, then PAD; None forces nothing.
    numbers: `[sentences, n]` uint32, the seed and the numbers that tell the output apart from all others; None draws
      nothing. The key of each position is derived from them.
  """

  prefixes: jax.Array | np.ndarray | None = None
  numbers: jax.Array | np.ndarray | None = None


def restriction(choices: Choices, limits: jax.Array, options: SamplingOptions | None) -> Restrict | None:
  """The function that allows only the chosen tokens of one sentence; None if nothing is chosen.

  Args:
    choices: what is chosen for each sentence.
    limits: `[sentences]` int32, the most tokens of an output. The last one can only be EOS.
    options: the options of sampling.

  Returns:
    A function of log P(next token) `[beams, vocab]`, the number of the sentence and the number of tokens so far. It
    returns the log-probabilities with -inf for each token that is not chosen.
  """
  prefixes, numbers = jax.tree.map(jnp.asarray, choices)
  if prefixes is None and numbers is None:
    return None

  def restrict(log_probs: jax.Array, sentence: jax.Array, position: jax.Array) -> jax.Array:
    chosen = jnp.int32(PAD)  # no output has this token: it stands for any
    if numbers is not None and options is not None:
      key = jax.random.fold_in(_key(numbers[sentence]), position)
      drawn = categorical(candidates(log_probs[0], options), jax.random.uniform(key))
      chosen = jnp.where(position + 1 >= limits[sentence], EOS, drawn).astype(jnp.int32)
    if prefixes is not None:
      forced = prefixes.at[sentence, position].get(mode="fill", fill_value=PAD)
      chosen = jnp.where(forced == PAD, chosen, forced)
    others = (chosen != PAD) & (jnp.arange(log_probs.shape[1]) != chosen)
    return jnp.where(others[None], -jnp.inf, log_probs)

  return restrict


def _key(numbers: jax.Array) -> jax.Array:
  """The random key of an output `[n]`: the seed, into which the other numbers are folded one after another."""
  key = key_of(numbers[0])
  for number in numbers[1:]:
    key = jax.random.fold_in(key, number)
  return key
