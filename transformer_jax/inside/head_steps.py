"""One head of self-attention, step by step: x, q, k, v, scores, weights and z, as the model computes them (§3.2)."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax import registry
from transformer_jax.model import masking
from transformer_jax.model.attention import WEIGHTS, MultiHeadAttention
from transformer_jax.model.config import ModelConfig, Remat
from transformer_jax.model.params import Params
from transformer_jax.model.special_tokens import EOS
from transformer_jax.runs.run import Model
from transformer_jax.runtime import devices
from transformer_jax.runtime.errors import InputError, require_option
from transformer_jax.runtime.texts import require_text
from transformer_jax.runtime.values import PyTree


class HeadSteps(NamedTuple):
  """The numbers of one head for one sentence.

  Attributes:
    title: which head this is.
    tokens: the sentence, n tokens.
    x: what the head reads, `[n, d_model]`: the layer's input, or with `pre_norm` its LayerNorm.
    matrices: W^Q, W^K and W^V of the head, `[d_model, d_k]`, `[d_model, d_k]` and `[d_model, d_v]`.
    q, k: x W^Q and x W^K, `[n, d_k]`.
    v: x W^V, `[n, d_v]`.
    scores: q k^T / sqrt(d_k), `[n, n]`; -inf outside of `config.model.attention_window`.
    weights: softmax(scores), `[n, n]`.
    z: weights v, `[n, d_v]`.
    biased: whether q, k and v have biases, too (`config.model.attention_bias`).
  """

  title: str
  tokens: tuple[str, ...]
  x: np.ndarray
  matrices: tuple[np.ndarray, np.ndarray, np.ndarray]
  q: np.ndarray
  k: np.ndarray
  v: np.ndarray
  scores: np.ndarray
  weights: np.ndarray
  z: np.ndarray
  biased: bool


def of_model(found: Model, sentence: str, layer: int | None = None, head: int = 1) -> HeadSteps:
  """The steps of a head of a trained Transformer's encoder.

  Args:
    found: the trained model.
    sentence: what the encoder reads.
    layer, head: their numbers, from 1; without a layer the last one is taken.

  Raises:
    InputError: the sentence is empty or too long, the model is no Transformer that translates, or there is no such
      layer or head.
  """
  model, config = found.config.model, found.config
  if not isinstance(model, ModelConfig):
    raise InputError(
      f"the run holds a {registry.name_of(model)} model, but the steps are drawn for the family {registry.FIRST} "
      "alone: take a run of it"
    )
  layer = model.encoder_depth if layer is None else layer
  require_option("layer", layer, 1 <= layer <= model.encoder_depth, f"from 1 to {model.encoder_depth}")
  require_option("head", head, 1 <= head <= model.num_heads, f"from 1 to {model.num_heads}")
  require_text(sentence, "the sentence")
  if not sentence.strip():
    raise InputError("the sentence is empty: give one of some words")
  tokens = [*found.tokenizer.source.encode(sentence), EOS]
  if len(tokens) > config.decode.max_source_length:
    raise InputError(f"the sentence has {len(tokens)} tokens, more than config.decode.max_source_length: shorten it")
  n, path = len(tokens), ("encoder", f"layers_{layer - 1}", "attention")
  params = devices.on_first_device(found.params)
  inputs = np.array(tokens, np.int32), np.arange(n), np.ones((n, n), bool)
  # What a layer under `jax.checkpoint` computes cannot be kept.
  module = registry.module(dataclasses.replace(model, remat=Remat.NONE))
  captured = _captured(module, path, params, *inputs, method="encode")
  title = f"layer {layer}, head {head} of the encoder"
  window = n if model.attention_window is None else model.attention_window
  mask = np.asarray(masking.window_mask(n, n, window))
  return _steps(captured, _at(params, path), head - 1, title, tuple(found.tokenizer.source.pieces(tokens)), mask)


def toy() -> HeadSteps:
  """The steps of a head of width 4 for three tokens, for a check by hand: x, the matrices, q, k and v are integers.

  d_k is 4, too, so that scores are divided by 2.
  """
  x = np.array([[1, 0, 1, 0], [0, 2, 0, 0], [1, 1, 0, 2]], np.float32)
  matrices = {
    "query": [[2, 0, 0, 0], [0, 1, 0, 0], [0, 0, 2, 0], [0, 0, 0, 1]],
    "key": [[1, 0, 0, 1], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]],
    "value": [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 3], [0, 0, 2, 0]],
  }
  params: Params = {
    name: {"kernel": np.array(matrix, np.float32).reshape(4, 1, 4)} for name, matrix in matrices.items()
  }
  params["output"] = {"kernel": np.eye(4, dtype=np.float32).reshape(1, 4, 4)}
  layer = MultiHeadAttention(ModelConfig(d_model=4, num_heads=1))

  def attend(layer: MultiHeadAttention, x: jax.Array) -> jax.Array:
    return layer(x, x, jnp.ones((3, 3), bool), deterministic=True)

  captured = _captured(layer, (), params, x, method=attend)
  return _steps(captured, params, 0, "a toy of width 4", ("I", "love", "you"), np.ones((3, 3), bool))


class _Captured(NamedTuple):
  """What a `MultiHeadAttention` computes: x `[n, model]`; q, k, v, z `[n, heads, ...]`; weights `[heads, n, n]`."""

  x: jax.Array
  q: jax.Array
  k: jax.Array
  v: jax.Array
  z: jax.Array
  weights: jax.Array


def _captured(
  module: nn.Module, path: tuple[str, ...], params: Params, *inputs: np.ndarray, method: str | Callable[..., PyTree]
) -> _Captured:
  """Runs a module, and keeps what the attention at `path` computes on the way."""

  @jax.jit
  def run(params: Params, *inputs: jax.Array) -> _Captured:
    calls: dict[tuple[str, ...], tuple[jax.Array, jax.Array]] = {}  # of each projection: its input and its result

    def keep(
      call: Callable[..., PyTree], args: PyTree, kwargs: PyTree, context: nn.module.InterceptorContext
    ) -> PyTree:
      result = call(*args, **kwargs)
      if context.method_name == "__call__" and context.module.path[:-1] == path:
        calls[context.module.path] = args[0], result
      return result

    with nn.intercept_methods(keep):
      _, state = module.apply({"params": params}, *inputs, method=method, mutable=["intermediates"])
    found = {name: calls[(*path, name)] for name in ("query", "key", "value", "output")}
    [weights] = _at(state["intermediates"], path)[WEIGHTS]
    return _Captured(*found["query"], found["key"][1], found["value"][1], found["output"][0], weights)

  return jax.device_get(run(params, *inputs))


def _at(tree: PyTree, path: tuple[str, ...]) -> PyTree:
  for name in path:
    tree = tree[name]
  return tree


def _steps(
  captured: _Captured, params: Params, head: int, title: str, tokens: tuple[str, ...], mask: np.ndarray
) -> HeadSteps:
  def of_head(array: jax.Array) -> np.ndarray:
    return np.asarray(array[:, head], np.float32)

  q, k, v, z = map(of_head, (captured.q, captured.k, captured.v, captured.z))
  w_q, w_k, w_v = (of_head(params[name]["kernel"]) for name in ("query", "key", "value"))
  x, weights = np.asarray(captured.x, np.float32), np.asarray(captured.weights[head])
  scores = np.where(mask, q @ k.T / np.float32(q.shape[1] ** 0.5), -np.inf)
  return HeadSteps(title, tokens, x, (w_q, w_k, w_v), q, k, v, scores, weights, z, "bias" in params["query"])
