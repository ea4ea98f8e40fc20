"""Only the matmuls of a training step, at their own shapes, in XLA or in torch.

The job's `matmuls` are [times, batch, m, k, n]: `times` batches of matmuls
[m, k] [k, n]. Each matmul is computed once for warm-up, and then at least five
times and for 0.2 s; the answer is the sum of times * median. Both libraries
reuse the memory of the previous result. With `bfloat16` on the command line the
operands are bfloat16; XLA's results are float32 then.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import protocol


def load(job: dict[str, Any], folder: Path) -> protocol.Answer:
  dtype = sys.argv[-1]
  matmul = in_torch(job["threads"], dtype) if "torch" in sys.argv[2:] else in_xla(dtype)
  random = np.random.default_rng(0)
  runs = [
    (times, matmul(*(np.squeeze(random.standard_normal(shape, np.float32)) for shape in ((b, m, k), (b, k, n)))))
    for times, b, m, k, n in job["matmuls"]
  ]
  return lambda: {"seconds": sum(times * median_seconds(run) for times, run in runs)}


def median_seconds(run: Callable[[], Any]) -> float:
  run()
  seconds: list[float] = []
  while len(seconds) < 5 or sum(seconds) < 0.2:
    start = time.perf_counter()
    run()
    seconds.append(time.perf_counter() - start)
  return statistics.median(seconds)


def in_xla(dtype: str) -> Callable[..., Callable[[], Any]]:
  import jax
  import jax.numpy as jnp

  def plain(left: jax.Array, right: jax.Array) -> jax.Array:
    return jnp.matmul(left, right, preferred_element_type=jnp.float32)

  multiply = jax.jit(lambda left, right, result: plain(left, right), donate_argnums=2, keep_unused=True)

  def matmul(a: np.ndarray, b: np.ndarray) -> Callable[[], Any]:
    left, right = jnp.asarray(a, dtype), jnp.asarray(b, dtype)
    result = plain(left, right)

    def run() -> None:
      nonlocal result
      result = multiply(left, right, result).block_until_ready()

    return run

  return matmul


def in_torch(threads: int, dtype: str) -> Callable[..., Callable[[], Any]]:
  import torch

  torch.set_num_threads(threads)

  def matmul(a: np.ndarray, b: np.ndarray) -> Callable[[], Any]:
    left, right = (torch.from_numpy(x).to(getattr(torch, dtype)) for x in (a, b))
    result = torch.matmul(left, right)
    return lambda: torch.matmul(left, right, out=result)

  return matmul


if __name__ == "__main__":
  if "torch" not in sys.argv[2:]:
    from transformer_jax.runtime.process import use_huge_pages

    use_huge_pages()  # as train.py does
  protocol.serve(load)
