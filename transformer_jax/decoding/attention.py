"""The weights of attention of one text or sentence pair, as data."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax.traverse_util import flatten_dict

from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.decoding import buckets
from transformer_jax.decoding.translation import require_finite
from transformer_jax.model import masking
from transformer_jax.model.attention import WEIGHTS
from transformer_jax.model.params import Params
from transformer_jax.model.special_tokens import PAD
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.values import PyTree

ENCODER, DECODER, CROSS = KINDS = ("encoder", "decoder", "cross")
MULTIPLE = 32  # programs are compiled for multiples of this length


class Attention(NamedTuple):
  """Where each head of a model looks, at each position.

  Attributes:
    source: the tokens that the encoder reads; empty without an encoder.
    read: the tokens that the decoder reads, the begin of sentence first; empty without a decoder.
    target: the tokens that the decoder writes, the end of sentence last: it writes `target[i]` when it has read
      `read[: i + 1]`.
    weights: float32 `[layers, heads, query, key]` for each kind of attention that the model has. The kinds are
      `encoder` and `decoder` for self-attention and `cross` for the decoder's attention over the encoder's output. Each
      row sums to 1.
  """

  source: tuple[str, ...]
  read: tuple[str, ...]
  target: tuple[str, ...]
  weights: dict[str, np.ndarray]

  def axes(self, kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tokens of the queries and of the keys: (source, source), (read, read) or (target, source)."""
    return {ENCODER: (self.source, self.source), DECODER: (self.read, self.read), CROSS: (self.target, self.source)}[
      kind
    ]


@functools.partial(jax.jit, static_argnames=("model", "method"))
def weights_by_kind(
  model: nn.Module, params: Params, *inputs: jax.Array, method: Callable[..., object] | None = None
) -> dict[str, jax.Array]:
  """The weights of each kind of attention in one pass of a model, `[layers, heads, query, key]`.

  The model sows the weights of each attention as `attention_weights`. A recurrent model has one head and one layer, so
  that its weights are `[query, key]`.

  Args:
    model: a model of the registry.
    params: its parameters.
    inputs: what the model takes, such as tokens `[length]` int32.
    method: what is called instead of the model's `__call__`.
  """
  _, state = model.apply({"params": params}, *inputs, method=method, mutable=["intermediates"])
  sown: dict[tuple[str, ...], PyTree] = flatten_dict(state.get("intermediates", {}))
  found: dict[str, list[jax.Array]] = {}
  for path in sorted(sown, key=_layer):
    if path[-1] == WEIGHTS:
      x = sown[path][0]
      found.setdefault(_kind(path), []).append(x if x.ndim == 3 else x[None])
  return {kind: jnp.stack(found[kind]) for kind in KINDS if kind in found}


def _kind(path: tuple[str, ...]) -> str:
  """The kind of the attention at a path such as `decoder/layers_0/cross_attention/attention_weights`."""
  if ENCODER in path:
    return ENCODER
  return DECODER if "self_attention" in path else CROSS


def _layer(path: tuple[str, ...]) -> int:
  """The number of the layer that a path leads through; 0 without layers."""
  return next((int(name.removeprefix("layers_")) for name in path if name.startswith("layers_")), 0)


def attention_of_pair(
  model: nn.Module,
  params: Params,
  tokenizer: Tokenizer,
  source: Sequence[int],
  target: Sequence[int],
  most: int | None = None,
) -> Attention:
  """The attention of a model that translates, in one pass over a sentence pair.

  Args:
    model: an encoder-decoder of the registry.
    params: its parameters.
    tokenizer: its tokenizer.
    source: the tokens of the source, with EOS.
    target: the tokens of the target, with EOS.
    most: the most weights that may be computed.

  Raises:
    InputError: the model has no attention, or there are more weights.
    RunError: a weight is not finite.
  """
  read, length = [model.config.start_token, *target[:-1]], buckets.padded(max(len(source), len(target)), MULTIPLE)
  rows = buckets.pad([source, read], 2, length, PAD)
  if most is not None:
    weights = sum(x.size for x in weights_by_kind.eval_shape(model, params, *rows).values())
    if weights > most:
      raise InputError(f"the pair has {weights:,} weights of attention, but at most {most:,} are shown: shorten it")
  found = weights_by_kind(model, params, *rows)
  sides = (tokenizer.source, source), (tokenizer.target, read), (tokenizer.target, target)
  texts = [tuple(side.pieces(ids)) for side, ids in sides]
  return Attention(texts[0], texts[1], texts[2], cut(found, len(source), len(read)))


def attention_of_text(model: nn.Module, params: Params, tokenizer: Tokenizer, tokens: Sequence[int]) -> Attention:
  """The attention of a language model that predicts each token of a text from those before it.

  Args:
    model: a language model that predicts each token from those before it.
    params, tokenizer: as in `attention_of_pair`.
    tokens: the tokens of the text alone, fewer than the model has positions.

  Raises:
    InputError: the model has no attention.
    RunError: a weight is not finite.
  """
  read = [model.config.start_token, *tokens]
  length = buckets.padded(len(read), MULTIPLE, model.config.most_positions)
  [row] = buckets.pad([read], 1, length, PAD)
  valid = jnp.arange(length) < len(read)
  mask = masking.combine(masking.causal_mask(length), masking.padding_mask(valid, valid))
  found = weights_by_kind(model, params, row, jnp.arange(length), mask)
  texts = [tuple(tokenizer.pieces(ids)) for ids in (read, [*tokens, model.config.end_token])]
  return Attention((), texts[0], texts[1], cut(found, 0, len(read)))


def cut(weights: Mapping[str, jax.Array], source: int, target: int) -> dict[str, np.ndarray]:
  """The weights of the real tokens, which are the first `source` and `target` of each sentence.

  Raises:
    InputError: there are no weights.
    RunError: a weight is not finite.
  """
  if not weights:
    raise InputError("this model has no attention, so there is nothing to see: take a run of another model")
  query, key = ({ENCODER: source, DECODER: target, CROSS: size} for size in (target, source))
  whole = jax.device_get(weights)
  found = {kind: whole[kind][:, :, : query[kind], : key[kind]].copy() for kind in KINDS if kind in whole}
  require_finite(all(bool(np.isfinite(x).all()) for x in found.values()))
  return found
