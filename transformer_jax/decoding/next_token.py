"""The probability of each token to come next: after the beginning of a translation, or of a text."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.decoding import buckets
from transformer_jax.decoding.attention import MULTIPLE
from transformer_jax.decoding.beam_search import log_softmax_without
from transformer_jax.decoding.translation import require_finite
from transformer_jax.model import masking
from transformer_jax.model.params import Params
from transformer_jax.model.special_tokens import PAD


class NextToken(NamedTuple):
  """The probabilities of one step.

  Attributes:
    source: the tokens that the encoder reads; empty for a language model.
    read: the tokens that come before, the begin of sentence first.
    texts: the text of each token of the vocabulary.
    probabilities: P(token | source, read), `[vocab]` float32; they sum to 1.
  """

  source: tuple[str, ...]
  read: tuple[str, ...]
  texts: tuple[str, ...]
  probabilities: np.ndarray

  def best(self, most: int) -> list[tuple[str, float]]:
    """The most probable tokens, at most `most`, with their probabilities, the largest first."""
    order = np.argsort(-self.probabilities, kind="stable")[:most]
    return [(self.texts[token], float(self.probabilities[token])) for token in order]


def after_pair(
  model: nn.Module,
  params: Params,
  tokenizer: Tokenizer,
  source: Sequence[int],
  written: Sequence[int],
  without: tuple[int, ...] = (),
) -> NextToken:
  """The probability of each next token of a translation.

  Args:
    model: an encoder-decoder of the registry.
    params: its parameters.
    tokenizer: its tokenizer.
    source: the tokens of the source, with EOS.
    written: the first tokens of the translation, without BOS.
    without: tokens that get no probability, as in `SearchOptions.without`.

  Raises:
    RunError: the probabilities are not finite.
  """
  read = [model.config.start_token, *written]
  rows = buckets.pad([source, read], 2, buckets.padded(max(len(source), len(read)), MULTIPLE), PAD)
  found = _after_pair(model, params, rows, np.int32(len(read) - 1), without)
  return _next_token(tokenizer, source, read, found)


def after_text(model: nn.Module, params: Params, tokenizer: Tokenizer, tokens: Sequence[int]) -> NextToken:
  """The probability of each next token of a text, by a language model.

  Args:
    model: a language model that predicts each token from those before it.
    params, tokenizer: as in `after_pair`.
    tokens: the tokens of the text alone, fewer than the model has positions.

  Raises:
    RunError: the probabilities are not finite.
  """
  read = [model.config.start_token, *tokens]
  [row] = buckets.pad([read], 1, buckets.padded(len(read), MULTIPLE, model.config.most_positions), PAD)
  return _next_token(tokenizer, [], read, _after_text(model, params, row, np.int32(len(read) - 1)))


@functools.partial(jax.jit, static_argnames=("model", "without"))
def _after_pair(
  model: nn.Module, params: Params, rows: jax.Array, position: jax.Array, without: tuple[int, ...]
) -> jax.Array:
  return _probabilities(model, params, model.apply({"params": params}, rows[0], rows[1]), position, without)


@functools.partial(jax.jit, static_argnames="model")
def _after_text(model: nn.Module, params: Params, row: jax.Array, position: jax.Array) -> jax.Array:
  # Causal alone: padding is behind the position that is asked for.
  hidden = model.apply({"params": params}, row, jnp.arange(len(row)), masking.causal_mask(len(row)))
  return _probabilities(model, params, hidden, position)


def _probabilities(
  model: nn.Module, params: Params, hidden: object, position: jax.Array, without: tuple[int, ...] = ()
) -> jax.Array:
  logits = model.apply({"params": params}, jnp.asarray(hidden)[position], method="logits")
  return jnp.exp(log_softmax_without(jnp.asarray(logits), without))


def _next_token(tokenizer: Tokenizer, source: Sequence[int], read: Sequence[int], found: jax.Array) -> NextToken:
  probabilities = np.asarray(found)
  require_finite(bool(np.isfinite(probabilities).all()))
  of_read, pieces = (tuple(tokenizer.pieces(ids)) for ids in (read, range(tokenizer.vocab_size)))
  return NextToken(tuple(tokenizer.source.pieces(source)), of_read, pieces, probabilities)
