"""The paper's equations in NumPy and float64: what the checks compare the code with. Nothing here is of the code.

Parameters are trees of arrays with the names that the modules give them.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

Params = Any


def softmax(z: np.ndarray) -> np.ndarray:
  """Over the last axis."""
  e = np.exp(z - z.max(axis=-1, keepdims=True))
  return e / e.sum(axis=-1, keepdims=True)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray) -> np.ndarray:
  """Eq. 1 for one head: `[query, d_k]`, `[key, d_k]`, `[key, d_v]`, `[query, key]` -> `[query, d_v]`."""
  return softmax(np.where(mask, q @ k.T / math.sqrt(q.shape[1]), -np.inf)) @ v


def multi_head(params: Params, x: np.ndarray, source: np.ndarray, mask: np.ndarray) -> np.ndarray:
  """§3.2.2: Concat(head_1, ..., head_h) W^O."""
  w_q, w_k, w_v, w_o = (params[name]["kernel"] for name in ("query", "key", "value", "output"))
  heads = [attention(x @ w_q[:, i], source @ w_k[:, i], source @ w_v[:, i], mask) for i in range(len(w_o))]
  return np.concatenate(heads, axis=1) @ np.concatenate(w_o)


def feed_forward(params: Params, x: np.ndarray) -> np.ndarray:
  """Eq. 2."""
  inner, outer = params["inner"], params["outer"]
  return np.maximum(0, x @ inner["kernel"] + inner["bias"]) @ outer["kernel"] + outer["bias"]


def layer_norm(params: Params, x: np.ndarray) -> np.ndarray:
  """Ba et al. 2016, eq. 4, over the last axis."""
  centred = x - x.mean(axis=-1, keepdims=True)
  return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-6) * params["scale"] + params["bias"]


def sinusoids(positions: Any, d_model: int) -> np.ndarray:
  """§3.5, number by number: `[positions, d_model]`."""
  table = np.empty((len(positions), d_model))
  for row, position in zip(table, positions, strict=True):
    for i in range(d_model // 2):
      angle = position / 10_000 ** (2 * i / d_model)
      row[2 * i], row[2 * i + 1] = math.sin(angle), math.cos(angle)
  return table


def learning_rate(step: int, d_model: int, warmup_steps: int) -> float:
  """Eq. 3."""
  return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def adam(
  params: np.ndarray, gradients: np.ndarray, rates: list[float], beta1: float, beta2: float, epsilon: float
) -> Iterator[np.ndarray]:
  """Algorithm 1 of Kingma and Ba 2015: the parameters after each update."""
  m, v = np.zeros_like(params), np.zeros_like(params)
  for t, (gradient, rate) in enumerate(zip(gradients, rates, strict=True), 1):
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    params = params - rate * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + epsilon)
    yield params


def length_penalty(length: int, alpha: float) -> float:
  """Wu et al. 2016, eq. 14."""
  return (5 + length) ** alpha / (5 + 1) ** alpha
