"""Nothing but the matrix products of a training step, at their own shapes, in XLA or in torch.

The job's `products` are [times, batch, m, k, n]: so many times a batch of
products [m, k] [k, n]. The seconds of the answer are those of `steps` times all.
"""

import sys
import time
from typing import Any

import numpy as np
import protocol


def load(job: dict[str, Any]):
  multiply, place = in_torch(job["threads"]) if "torch" in sys.argv[2:] else in_xla()
  random = np.random.default_rng(0)
  operands = [
    (times, [place(random.standard_normal(s, np.float32)) for s in ((batch, m, k), (batch, k, n))])
    for times, batch, m, k, n in job["products"]
  ]

  def train(steps: int) -> dict[str, float]:
    total = 0.0
    for times, pair in operands:
      multiply(*pair)
      start = time.perf_counter()
      for _ in range(steps):
        multiply(*pair)
      total += times * (time.perf_counter() - start)
    return {"seconds": total}

  return train


def in_xla():
  import jax
  import jax.numpy as jnp

  product = jax.jit(jnp.matmul)
  return lambda a, b: product(a, b).block_until_ready(), lambda x: jnp.asarray(x[0] if len(x) == 1 else x)


def in_torch(threads: int):
  import torch

  torch.set_num_threads(threads)
  return torch.matmul, lambda x: torch.from_numpy(x[0] if len(x) == 1 else x)


if __name__ == "__main__":
  protocol.serve(load)
