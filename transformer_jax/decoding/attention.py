"""The weights of attention of one text or sentence pair, as data."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax.traverse_util import flatten_dict

from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.decoding import buckets
from transformer_jax.model import masking
from transformer_jax.model.attention import WEIGHTS
from transformer_jax.model.params import Params
from transformer_jax.model.special_tokens import PAD
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.values import PyTree

ENCODER, DECODER, CROSS = KINDS = ("encoder", "decoder", "cross")
MULTIPLE = 32  # programs are compiled for multiples of this length
# From parameters and a model's inputs to its weights by kind.
Program = Callable[..., dict[str, jax.Array]]


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


def attention_program(model: nn.Module, method: Callable[..., object] | None = None) -> Program:
  """A compiled function (params, inputs of the model) -> weights by kind, `[layers, heads, query, key]`.

  The model sows the weights of each attention as `attention_weights`. A recurrent model has one head and one layer, so
  that its weights are `[query, key]`.

  Args:
    model: a model of the registry.
    method: what is called instead of the model's `__call__`.
  """

  def weights(params: Params, *inputs: jax.Array) -> dict[str, jax.Array]:
    _, state = model.apply({"params": params}, *inputs, method=method, mutable=["intermediates"])
    sown: dict[tuple[str, ...], PyTree] = flatten_dict(state.get("intermediates", {}))
    found: dict[str, list[jax.Array]] = {}
    for path in sorted(sown, key=_layer):
      if path[-1] == WEIGHTS:
        x = sown[path][0]
        found.setdefault(_kind(path), []).append(x if x.ndim == 3 else x[None])
    return {kind: jnp.stack(found[kind]) for kind in KINDS if kind in found}

  return jax.jit(weights)


def _kind(path: tuple[str, ...]) -> str:
  """The kind of the attention at a path such as `decoder/layers_0/cross_attention/attention_weights`."""
  if ENCODER in path:
    return ENCODER
  return DECODER if "self_attention" in path else CROSS


def _layer(path: tuple[str, ...]) -> int:
  """The number of the layer that a path leads through; 0 without layers."""
  return next((int(name.removeprefix("layers_")) for name in path if name.startswith("layers_")), 0)


def attention_of_pair(
  program: Program,
  params: Params,
  tokenizer: Tokenizer,
  source: Sequence[int],
  target: Sequence[int],
  start: int,
) -> Attention:
  """The attention of a model that translates, in one pass over a sentence pair.

  Args:
    program: the result of `attention_program`.
    params: the model's parameters.
    tokenizer: the model's tokenizer.
    source: the tokens of the source, with EOS.
    target: the tokens of the target, with EOS.
    start: the token that the decoder reads first.

  Raises:
    InputError: the model has no attention.
    RunError: a weight is not finite.
  """
  read, length = [start, *target[:-1]], buckets.padded(max(len(source), len(target)), MULTIPLE)
  weights = program(params, *buckets.pad([source, read], 2, length, PAD))
  sides = (tokenizer.source, source), (tokenizer.target, read), (tokenizer.target, target)
  texts = [tuple(side.pieces(ids)) for side, ids in sides]
  return Attention(texts[0], texts[1], texts[2], cut(weights, len(source), len(read)))


def attention_of_text(
  program: Program,
  params: Params,
  tokenizer: Tokenizer,
  tokens: Sequence[int],
  most: int | None,
  special: tuple[int, int],
) -> Attention:
  """The attention of a language model that predicts each token of a text from those before it.

  Args:
    program, params, tokenizer: as in `attention_of_pair`.
    tokens: the text's tokens, without BOS and EOS.
    most: the most positions of the model, more than there are tokens; None is no limit.
    special: the tokens in front of a text and behind it.

  Raises:
    InputError: the model has no attention.
    RunError: a weight is not finite.
  """
  read = [special[0], *tokens]
  length = buckets.padded(len(read), MULTIPLE, most)
  [row] = buckets.pad([read], 1, length, PAD)
  valid = jnp.arange(length) < len(read)
  mask = masking.combine(masking.causal_mask(length), masking.padding_mask(valid, valid))
  weights = program(params, row, jnp.arange(length), mask)
  texts = [tuple(tokenizer.pieces(ids)) for ids in (read, [*tokens, special[1]])]
  return Attention((), texts[0], texts[1], cut(weights, 0, len(read)))


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
  buckets.require_finite(all(bool(np.isfinite(x).all()) for x in found.values()))
  return found
