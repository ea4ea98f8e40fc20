"""Model FLOPs utilisation: the operations that a training step needs, and the rate of matmuls to compare them with.

The operations are those that the model needs for the tokens without padding. A multiplication and an addition are two
operations, and the backward pass makes them three times as many: 6 N D, where the parameters of each matmul count with
the tokens that they are multiplied with,

    encoder layer      N_s (h d (2 d_k + 2 d_v) + 2 d d_ff)      N_s source tokens, N_t target tokens
    decoder layer      N_t (h d (3 d_k + 3 d_v) + 2 d d_ff) + N_s h d (d_k + d_v)
    output layer       N_t d V

and the scores and weighted values of attention, h (d_k + d_v) per pair of positions: s^2 pairs in a source of s tokens,
t (t + 1) / 2 in its target of t tokens, and s t between them. Padding, masked pairs of positions, repeated computation,
embeddings and all operations except matmuls do not count. The reference is the rate of square matmuls, the best of a
few sizes.
"""

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax.data import packing
from transformer_jax.model.config import Dtype, ModelConfig
from transformer_jax.runtime import devices


def lengths(rows: np.ndarray) -> np.ndarray:
  """The tokens of the source and the target of each pair in packed rows, with EOS: `[pairs, 2]`."""
  sides = rows[:, [packing.SOURCE_SEGMENTS, packing.TARGET_SEGMENTS]].astype(np.int64)  # [rows, 2, length]
  segments = np.arange(1, sides.max() + 1)
  counts = np.sum(sides[:, None] == segments[:, None, None], axis=-1)  # [rows, segments, 2]
  return counts[counts.all(axis=-1)]


def forward_flops(model: ModelConfig, source: np.ndarray, target: np.ndarray) -> float:
  """The multiplications and additions that the model's matmuls need for pairs with these numbers of tokens."""
  d, heads, head = model.d_model, model.num_heads, model.head_dim_k + model.head_dim_v
  feed_forward = 2 * d * model.d_ff
  source_tokens, target_tokens = int(source.sum()), int(target.sum())
  encoder = source_tokens * (2 * heads * d * head + feed_forward)
  decoder = target_tokens * (3 * heads * d * head + feed_forward) + source_tokens * heads * d * head
  pairs = int((source**2 + target * (target + 1) // 2 + source * target).sum())
  layers = model.num_layers * (encoder + decoder + heads * head * pairs)
  return 2.0 * (layers + target_tokens * d * model.vocab_size)


def matmul_rate(dtype: Dtype) -> float:
  """The operations per second of square matmuls, at their best size."""
  sizes = (1024, 2048, 4096) if devices.on_cpu() else (4096, 8192, 16384)
  return devices.device_count() * max(_rate(size, jnp.dtype(dtype.value)) for size in sizes)


def _rate(size: int, dtype: Any) -> float:
  a = jax.random.normal(jax.random.key(0), (size, size), dtype)
  multiply = jax.jit(jnp.matmul)
  jax.block_until_ready(multiply(a, a))
  times = max(3, round(2e12 / size**3)) if not devices.on_cpu() else 3
  start = time.perf_counter()
  jax.block_until_ready([multiply(a, a) for _ in range(times)])
  return times * 2 * size**3 / (time.perf_counter() - start)
