"""What a device computes for a batch of sentences: the search for translations, and the probability of given ones."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from transformer_jax.config import LengthPenalty
from transformer_jax.data.tokenizer import BOS, EOS, PAD
from transformer_jax.decoding.beam_search import Hypotheses, beam_search
from transformer_jax.model import masking
from transformer_jax.model.transformer import Transformer

Params = Any


@dataclass(frozen=True)
class SearchOptions:
  """How to search; each is compiled by itself.

  Attributes:
    beam_size, length_penalty, alpha, n_best: as in `beam_search`.
    extra_length: an output has at most the input's tokens and this many.
  """

  beam_size: int
  length_penalty: LengthPenalty
  alpha: float
  n_best: int
  extra_length: int


def search(model: Transformer, options: SearchOptions, params: Params, source: jax.Array) -> Hypotheses:
  """The best translations of `source`, `[sentences, length]` with EOS; a row of padding has none."""
  variables = {"params": params}
  lengths = jnp.sum(source != PAD, axis=1, dtype=jnp.int32)
  limits = jnp.where(lengths > 0, lengths + options.extra_length, 0)
  max_length = source.shape[1] + options.extra_length

  def start(source: jax.Array) -> Any:
    memory = _encode(model, variables, source)
    return model.apply(variables, memory, source != PAD, max_length, options.beam_size, method="start")

  def decode_step(cache: Any, position: jax.Array, parents: jax.Array, tokens: jax.Array) -> Any:
    return model.apply(variables, cache, position, parents, tokens, method="decode_step")

  def step(cache: Any, position: jax.Array, parents: jax.Array, tokens: jax.Array) -> tuple[jax.Array, Any]:
    hidden, cache = jax.vmap(decode_step, (0, None, 0, 0))(cache, position, parents, tokens)
    return _log_probs(model, variables, hidden), cache  # [sentences, beams, vocab]

  return beam_search(
    step,
    jax.vmap(start)(source),
    limits,
    beam_size=options.beam_size,
    max_length=max_length,
    length_penalty=options.length_penalty,
    alpha=options.alpha,
    bos=BOS,
    eos=EOS,
    pad=PAD,
    n_best=options.n_best,
  )


def score(model: Transformer, params: Params, pairs: tuple[jax.Array, jax.Array]) -> jax.Array:
  """log P(target | source) of each pair.

  Args:
    model: the Transformer.
    params: its parameters.
    pairs: sources and targets, each `[sentences, length]` with EOS.

  Returns:
    `[sentences]` float32; 0 for a row of padding.
  """
  variables = {"params": params}

  def decode(source: jax.Array, target: jax.Array) -> jax.Array:
    memory = _encode(model, variables, source)
    length = len(target)
    shifted = jnp.roll(target, 1).at[0].set(BOS)
    cross_mask = masking.padding_mask(target != PAD, source != PAD)
    hidden = model.apply(
      variables, shifted, jnp.arange(length), memory, masking.causal_mask(length), cross_mask, method="decode"
    )
    return jnp.asarray(hidden)

  def log_prob(pair: tuple[jax.Array, jax.Array]) -> jax.Array:
    hidden, target = pair
    log_probs = _log_probs(model, variables, hidden)  # [target, vocab]
    chosen = jnp.take_along_axis(log_probs, target[:, None], axis=1)[:, 0]
    return jnp.sum(jnp.where(target == PAD, 0, chosen))

  # One sentence after another: probabilities of every token at every place are large.
  return jax.lax.map(log_prob, (jax.vmap(decode)(*pairs), pairs[1]))


def _encode(model: Transformer, variables: Any, source: jax.Array) -> Any:
  """One sentence `[length]` -> memory `[length, model]`."""
  valid = source != PAD
  return model.apply(variables, source, jnp.arange(len(source)), masking.padding_mask(valid, valid), method="encode")


def _log_probs(model: Transformer, variables: Any, hidden: jax.Array) -> jax.Array:
  logits: Any = model.apply(variables, hidden, method="logits")
  return jax.nn.log_softmax(logits)
