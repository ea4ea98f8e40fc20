"""What each head of a Transformer does: where it looks, and what is lost without it."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict

from transformer_jax import registry
from transformer_jax.decoding.attention import CROSS, DECODER, ENCODER, Attention
from transformer_jax.decoding.line_warning import LineWarning
from transformer_jax.decoding.translator import Translator
from transformer_jax.evaluation import scores
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.params import Params
from transformer_jax.runtime.errors import InputError

_MODULES = {
  ENCODER: ("encoder", "attention"),
  DECODER: ("decoder", "self_attention"),
  CROSS: ("decoder", "cross_attention"),
}


class Head(NamedTuple):
  """One head on a text. The statistics of its weights are means over all queries.

  Attributes:
    kind: `encoder`, `decoder` or `cross`.
    layer: its layer, from 1.
    head: its number in the layer, from 1.
    entropy: the entropy of the weights in bits: 0 if one token has all of it, log2(n) if n tokens share it equally.
    distance: the mean distance of query and key in positions, by the weights.
    previous, same, next: the weight on the position before the query's, on the same one, and on the one after it.
    bleu_lost: BLEU of the whole model minus BLEU without the head.
    loss_added: the loss without the head minus the loss of the whole model, in nats per target token.
  """

  kind: str
  layer: int
  head: int
  entropy: float
  distance: float
  previous: float
  same: float
  next: float
  bleu_lost: float
  loss_added: float


def heads(
  translator: Translator,
  pairs: Sequence[tuple[str, str]],
  progress: Callable[[int], object] = lambda count: None,
  warn: Callable[[LineWarning], object] = lambda warning: None,
) -> Iterator[Head]:
  """Yields each head of a model, measured on sentence pairs.

  While it runs, the translator's parameters lack a head. Afterwards they are what they were.

  Args:
    translator: the model.
    pairs: sources with their translations.
    progress: is called with the number of lines translated since the last call; `lines_to_translate` is their sum.
    warn: is called with a warning for each source that is translated in parts.

  Raises:
    InputError: the model is no Transformer, there are no pairs, or a sentence is too long.
  """
  _require_transformer(translator)
  scores.check_tokenization(translator.config.evaluate.tokenize)
  if not pairs:
    raise InputError("there is no sentence pair to measure the heads on: give a text with some")
  whole = translator.params
  bleu, loss = _measured(translator, pairs, progress, warn)
  statistics = weight_statistics(translator.attention(source, target) for source, target in pairs)
  try:
    for kind, found in statistics.items():
      for layer, head in np.ndindex(*found.shape[:2]):
        translator.params = masked(whole, kind, layer, head)
        without_bleu, without_loss = _measured(translator, pairs, progress)
        numbers = map(float, found[layer, head])
        yield Head._make((kind, layer + 1, head + 1, *numbers, bleu - without_bleu, without_loss - loss))
  finally:
    translator.params = whole


def lines_to_translate(translator: Translator, pairs: Sequence[tuple[str, str]]) -> int:
  """The number of lines that `heads` translates: all of them with the whole model, and once without each head."""
  model = _require_transformer(translator)
  layers = model.encoder_depth + 2 * model.decoder_depth  # a decoder layer has self-attention and cross-attention
  return len(pairs) * (1 + layers * model.num_heads)


def weight_statistics(attentions: Iterable[Attention]) -> dict[str, np.ndarray]:
  """The entropy, the distance, and the previous, same and next weight of each head, as described in `Head`.

  Args:
    attentions: the weights of one or more sentence pairs. They are read one at a time, as they are large.

  Returns:
    For each kind `[layers, heads, 5]` float64: the means over all queries.
  """
  sums: dict[str, list[np.ndarray]] = {}
  queries: Counter[str] = Counter()
  for attention in attentions:
    for kind, weights in attention.weights.items():
      sums.setdefault(kind, []).append(_sums(weights.astype(np.float64)))
      queries[kind] += weights.shape[2]
  return {kind: np.sum(found, axis=0) / queries[kind] for kind, found in sums.items()}


def _sums(weights: np.ndarray) -> np.ndarray:
  """The sums over the queries of one sentence pair: `[layers, heads, query, key]` -> `[layers, heads, 5]`."""
  query, key = weights.shape[2:]
  offset = np.arange(key)[None, :] - np.arange(query)[:, None]
  bits = -np.log2(np.where(weights > 0, weights, 1))
  return np.stack(
    [np.sum(weights * part, axis=(2, 3)) for part in (bits, abs(offset), offset == -1, offset == 0, offset == 1)], -1
  )


def masked(params: Params, kind: str, layer: int, head: int) -> Params:
  """The parameters without a head: its rows of W^O are zero, so its output adds nothing (Michel et al. 2019).

  Args:
    params: a Transformer's parameters.
    kind: the kind of the head.
    layer, head: its numbers, from 0.
  """
  stack, module = _MODULES[kind]
  flat, path = flatten_dict(params), (stack, f"layers_{layer}", module, "output", "kernel")
  return unflatten_dict(flat | {path: jnp.asarray(flat[path]).at[head].set(0)})


def _require_transformer(translator: Translator) -> ModelConfig:
  model = translator.config.model
  if not isinstance(model, ModelConfig):
    raise InputError(
      f"the run has a {registry.name_of(model)} model, but only the heads of a Transformer that translates can be "
      "masked: take the run of one"
    )
  return model


def _measured(
  translator: Translator,
  pairs: Sequence[tuple[str, str]],
  progress: Callable[[int], object],
  warn: Callable[[LineWarning], object] = lambda warning: None,
) -> tuple[float, float]:
  """BLEU as the run's config says, and the loss per target token."""
  given = translator.score(pairs)  # first, as it refuses a sentence that is too long
  found = translator.translate_lines([source for source, _ in pairs], progress=progress, warn=warn)
  translations, references = [best[0].text for best in found], [target for _, target in pairs]
  evaluate = translator.config.evaluate
  bleu = scores.score(translations, references, tokenize=evaluate.tokenize, lowercase=evaluate.lowercase).bleu
  return bleu, -math.fsum(pair.log_probability for pair in given) / sum(pair.tokens for pair in given)
