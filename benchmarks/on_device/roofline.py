"""The least time of each part of a training step: its operations at the rate of matmuls, or its bytes at memory's.

A part cannot take less than the longer of the two. The operations are those that are computed, padding and masked
positions included. The bytes are the least that a kernel for each matmul and one for what lies between two matmuls
must read and write, forward and backward; caches are not counted.
"""

import dataclasses
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import part
import sizes
import utilisation

from transformer_jax.model.config import ModelConfig
from transformer_jax.runtime import devices

_HALF, _FULL = 2, 4  # bytes of bfloat16 and of float32
_MATMULS = 3  # forward, and for the gradient of each operand


class Work(NamedTuple):
  """The operations and bytes of a part of a step."""

  operations: float
  bytes: float

  def seconds(self, rate: float, bandwidth: float) -> float:
    return max(self.operations / rate, self.bytes / bandwidth)


def work(model: ModelConfig, rows: int, length: int, parameters: int) -> dict[str, Work]:
  """The work of each part of an update of `rows` rows with `length` tokens on each side."""
  d, heads, head = model.d_model, model.num_heads, model.head_dim_k + model.head_dim_v
  tokens, layers = rows * length, model.num_layers
  weights = layers * 3 * rows * heads * length**2  # of all attentions, each of which has [heads, query, key]
  # Scores: written, read by the softmax; weights: written, read by the product with V, each forward and backward.
  passes = 0 if model.fused_attention else 2 * (2 * _FULL + 2 * _HALF)
  projected = heads * head  # widths of queries and head outputs, or of keys and values
  return {
    "projections of attention": Work(
      _MATMULS * 2 * tokens * layers * 3 * d * 2 * projected,
      _MATMULS * _HALF * tokens * layers * 3 * (4 * d + 2 * projected),
    ),
    "scores and weighted values": Work(
      _MATMULS * 2 * weights * head, passes * weights + _MATMULS * _HALF * tokens * layers * 3 * 2 * projected
    ),
    "feed-forward": Work(
      _MATMULS * 2 * 2 * tokens * layers * 2 * d * model.d_ff,
      _MATMULS * _HALF * 2 * tokens * layers * 2 * (d + model.d_ff),
    ),
    # Around each sub-layer: two inputs and an output forward; their gradients, and the inputs once more, backward.
    "dropout, residuals, normalisation": Work(0, 8 * _HALF * tokens * layers * 5 * d),
    # The logits and their gradient: each written once, and each read by two operations.
    "output layer and loss": Work(_MATMULS * 2 * tokens * d * model.vocab_size, 6 * _FULL * tokens * model.vocab_size),
    # Adam reads parameter, gradient and two moments, and writes all but the gradient.
    "optimizer": Work(0, 7 * _FULL * parameters),
  }


def bandwidth(tiny: bool) -> float:
  """The bytes per second of a copy, read and written."""
  size = 1 << (20 if tiny else 30)
  copy = jax.jit(lambda x: x + 1)
  x = jax.block_until_ready(copy(jnp.zeros(size // _FULL)))
  times = 20
  start = time.perf_counter()
  for _ in range(times):
    x = copy(x)
  jax.block_until_ready(x)
  return times * 2 * size / (time.perf_counter() - start)


def matmul_rate(tiny: bool) -> float:
  return utilisation._rate(128, jnp.bfloat16) if tiny else utilisation.matmul_rate(sizes.BASE.dtype)


def cases(tiny: bool) -> dict[str, part.Case]:
  rates: dict[str, float] = {}

  def measured() -> part.Rows:
    rates.update(matmul=matmul_rate(tiny), memory=bandwidth(tiny))
    return [{"device": devices.describe()["kind"], "TFLOP/s": rates["matmul"] / 1e12, "GB/s": rates["memory"] / 1e9}]

  def step(model: ModelConfig) -> part.Rows:
    rates or measured()
    return rows_of(model, tiny, rates["matmul"], rates["memory"])

  found: dict[str, part.Case] = {"rates": measured}
  for name, model in sizes.models(tiny).items():
    for fused in (False,) if tiny else (False, True):
      one = dataclasses.replace(model, fused_attention=fused)
      found[f"{name}, {'fused' if fused else 'plain'} attention"] = lambda one=one: step(one)
  return found


def rows_of(model: ModelConfig, tiny: bool, rate: float, bandwidth: float) -> part.Rows:
  """The rows of a step of the paper's batch in rows of 128."""
  length = 32 if tiny else 128
  rows = 2 if tiny else 196
  packed = utilisation.lengths(sizes.packed_rows(model, length, rows))
  needed = 3 * utilisation.forward_flops(model, packed[:, 0], packed[:, 1])
  from transformer_jax.analysis import requirements

  parts = work(model, rows, length, requirements.parameters(sizes.config(model, length, rows * length))["total"])
  least = {name: one.seconds(rate, bandwidth) for name, one in parts.items()}
  table = [
    {
      "part": name,
      "TFLOP": one.operations / 1e12,
      "GB": one.bytes / 1e9,
      "least ms": 1e3 * least[name],
      "bound": "matmuls" if one.operations / rate >= one.bytes / bandwidth else "memory",
    }
    for name, one in parts.items()
  ]
  total = sum(least.values())
  return [*table, {"part": "step", "least ms": 1e3 * total, "utilisation at most, %": 100 * needed / (rate * total)}]


if __name__ == "__main__":
  part.run(cases)
