"""The Transformer in NumPy and float64, written from the paper's equations: the truth of these tests.

Parameters are trees of arrays with the names that the modules give them. Loops
stand where the modules have einsums, so that the two have little in common.
"""

import math
from typing import Any

import numpy as np

from transformer_jax.model.config import ModelConfig

Params = Any


def softmax(z: np.ndarray) -> np.ndarray:
  """`[n]` -> `[n]`."""
  e = np.exp(z - np.max(z))
  return e / np.sum(e)


def smoothed_loss(logits: np.ndarray, target: int, smoothing: float) -> float:
  """§5.4: -sum_v q_v log p_v of logits `[vocab]`, with q = 1 - eps + eps / V on the target and eps / V elsewhere."""
  q = np.full(len(logits), smoothing / len(logits))
  q[target] += 1 - smoothing
  return -float(np.sum(q * np.log(softmax(logits))))


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray) -> np.ndarray:
  """Eq. 1, one head, query by query: `[query, d_k]`, `[key, d_k]`, `[key, d_v]` -> `[query, d_v]`."""
  result = np.zeros((len(q), v.shape[1]))
  for i, allowed in enumerate(mask):
    if allowed.any():
      result[i] = softmax(k[allowed] @ q[i] / math.sqrt(q.shape[1])) @ v[allowed]
  return result


def multi_head(params: Params, x: np.ndarray, source: np.ndarray, mask: np.ndarray) -> np.ndarray:
  """§3.2.2: Concat(head_1, ..., head_h) W^O."""

  def project(name: str, x: np.ndarray, head: int) -> np.ndarray:
    bias = params[name].get("bias")
    return x @ params[name]["kernel"][:, head] + (0 if bias is None else bias[head])

  heads = [
    attention(project("query", x, head), project("key", source, head), project("value", source, head), mask)
    for head in range(params["query"]["kernel"].shape[1])
  ]
  output = params["output"]
  return np.concatenate(heads, axis=1) @ np.concatenate(output["kernel"]) + output.get("bias", 0)


def feed_forward(params: Params, x: np.ndarray) -> np.ndarray:
  """Eq. 2: max(0, x W_1 + b_1) W_2 + b_2."""
  hidden = np.maximum(0, x @ params["inner"]["kernel"] + params["inner"]["bias"])
  return hidden @ params["outer"]["kernel"] + params["outer"]["bias"]


def layer_norm(params: Params, x: np.ndarray) -> np.ndarray:
  """Ba et al. 2016, eq. 4, with epsilon 1e-6."""
  centred = x - x.mean(axis=-1, keepdims=True)
  variance = (centred**2).mean(axis=-1, keepdims=True)
  return centred / np.sqrt(variance + 1e-6) * params["scale"] + params["bias"]


def sublayer(params: Params, x: np.ndarray, f: Any, pre_norm: bool) -> np.ndarray:
  """§3.1: LayerNorm(x + f(x)); by option x + f(LayerNorm(x))."""
  if pre_norm:
    return x + f(layer_norm(params["norm"], x))
  return layer_norm(params["norm"], x + f(x))


def sinusoid(position: int, d_model: int) -> list[float]:
  """§3.5, the encoding of one position."""
  result = []
  for i in range(d_model // 2):
    angle = position / 10_000 ** (2 * i / d_model)
    result += [math.sin(angle), math.cos(angle)]
  return result


def encoder_layer(params: Params, x: np.ndarray, mask: np.ndarray, pre_norm: bool) -> np.ndarray:
  x = sublayer(params["attention_sublayer"], x, lambda y: multi_head(params["attention"], y, y, mask), pre_norm)
  return sublayer(params["feed_forward_sublayer"], x, lambda y: feed_forward(params["feed_forward"], y), pre_norm)


def decoder_layer(
  params: Params, x: np.ndarray, memory: np.ndarray, self_mask: np.ndarray, cross_mask: np.ndarray, pre_norm: bool
) -> np.ndarray:
  def self_attention(y: np.ndarray) -> np.ndarray:
    return multi_head(params["self_attention"], y, y, self_mask)

  def cross_attention(y: np.ndarray) -> np.ndarray:
    return multi_head(params["cross_attention"], y, memory, cross_mask)

  x = sublayer(params["self_sublayer"], x, self_attention, pre_norm)
  x = sublayer(params["cross_sublayer"], x, cross_attention, pre_norm)
  return sublayer(params["feed_forward_sublayer"], x, lambda y: feed_forward(params["feed_forward"], y), pre_norm)


def enter(table: np.ndarray, positions_params: Params, tokens: np.ndarray, positions: np.ndarray) -> np.ndarray:
  """§3.4 and §3.5: embeddings times sqrt(d_model), plus positions; learned ones are scaled alike."""
  d_model = table.shape[1]
  if positions_params is None:
    encoding = np.array([sinusoid(int(position), d_model) for position in positions])
  else:
    encoding = positions_params["table"][positions] * math.sqrt(d_model)
  return table[tokens] * math.sqrt(d_model) + encoding


def within(mask: np.ndarray, window: int) -> np.ndarray:
  """§4: the mask, without what is farther away than the window."""
  return np.array([[allowed and abs(i - j) <= window for j, allowed in enumerate(row)] for i, row in enumerate(mask)])


def transformer(
  config: ModelConfig,
  params: Params,
  source: np.ndarray,
  target: np.ndarray,
  source_positions: np.ndarray,
  target_positions: np.ndarray,
  source_mask: np.ndarray,
  target_mask: np.ndarray,
  cross_mask: np.ndarray,
) -> np.ndarray:
  """Figure 1: logits `[target, vocab]`."""
  target_table = params["target_embedding"]["table"]
  source_table = target_table if config.share_embeddings else params["own_source_embedding"]["table"]
  output_table = target_table if config.share_logits else params["own_output"]["table"]
  encoder, decoder = params["encoder"], params["decoder"]

  if config.attention_window is not None:
    source_mask, target_mask = (within(mask, config.attention_window) for mask in (source_mask, target_mask))

  memory = enter(source_table, params.get("source_positions"), source, source_positions)
  for i in range(config.num_layers):
    memory = encoder_layer(encoder[f"layers_{i}"], memory, source_mask, config.pre_norm)
  memory = layer_norm(encoder["norm"], memory) if config.pre_norm else memory

  x = enter(target_table, params.get("target_positions"), target, target_positions)
  for i in range(config.num_layers):
    x = decoder_layer(decoder[f"layers_{i}"], x, memory, target_mask, cross_mask, config.pre_norm)
  x = layer_norm(decoder["norm"], x) if config.pre_norm else x
  return x @ output_table.T
