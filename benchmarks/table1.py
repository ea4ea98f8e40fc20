"""Measurement of the paper's Table 1: the time, sequential operations and path length of a layer of each type.

    taskset -c 0 python benchmarks/table1.py [--sweeps NAME ...] [--rounds N] [--json FILE] [--svg FILE]

Times are processor times, summed over all threads of this program. On one core, as with taskset, they equal the elapsed
time of an idle machine, even if other programs run. The program prints four tables.

- Exponents. Each sweep changes one of n (positions), d (width), k (width of a convolution) and r (neighbourhood) of one
  layer type, in float32 and for one sequence. It fits time = c * size^exponent by least squares of the logarithms, for
  the forward pass and with the backward pass. "counted" is the same fit to the multiplications and additions of the
  matmuls in the trace. It has no noise; with a second term (the projections, the second matmul of a separable
  convolution) it lies between the exponents of both terms. A point counts only if it takes FLOOR times as long as the
  sweep's quickest, whose time is mostly overhead; with fewer than three points left there is no exponent. "of the best
  rate" is the rate of the arithmetic at the ends of the range, relative to the best rate of all points. If it is small,
  memory or many small steps take the time, not arithmetic.
- Sequential operations: the longest chain of operations that wait for one another, from the trace.
- Path lengths: the number of layers (steps, for the recurrence) that connect all positions, from the Jacobians'
  non-zero entries.
- Additive against dot-product attention (§3.2.1) of one head over n positions, as d_k grows: the time, and the memory
  that the compiler allocates for intermediate results.
"""

import argparse
import functools
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import programs
import report

from transformer_jax.analysis import operations
from transformer_jax.model.attention import scaled_dot_product_attention
from transformer_jax.ops.masked_softmax import masked_softmax
from transformer_jax.paper.table1.table import ROWS, Layer, Sizes, path_lengths
from transformer_jax.recurrent.attention import additive_score, context_vector
from transformer_jax.runtime.compilation_cache import use_compilation_cache
from transformer_jax.runtime.process import use_huge_pages

FLOOR = 4
LEAST_SECONDS = 0.003  # the least time of a measurement; quicker work is repeated
PASSES = ("forward", "and backward")

# For each size that changes: its values, the other sizes, and the layer types.
LAYERS = tuple(ROWS)
SWEEPS: dict[str, tuple[tuple[int, ...], Sizes, tuple[str, ...]]] = {
  "n": ((16, 128, 256, 512, 1024, 2048), Sizes(n=0, d=256, k=3, r=16), LAYERS),
  "d": ((16, 128, 256, 512, 1024), Sizes(n=256, d=0, k=3, r=16), LAYERS),
  "k": ((1, 9, 17, 33, 65), Sizes(n=512, d=128), ("convolutional", "separable convolutional")),
  "r": ((2, 16, 32, 64, 128, 256, 512, 1024), Sizes(n=2048, d=256), ("restricted self-attention",)),
}
KEY_WIDTHS, POSITIONS = (1, 4, 16, 64, 256), 256  # the sizes for additive and dot-product attention


class Program(NamedTuple):
  """A compiled function with its arguments.

  Attributes:
    run: calls the function and waits for its result.
    products: the multiplications and additions of its matmuls.
    tanh: the number of tanh operations.
    bytes: the bytes that it allocates for intermediate results.
  """

  run: Callable[[], Any]
  products: int
  tanh: int
  bytes: int


def main() -> None:
  args = parse()
  use_compilation_cache()
  points = [point for name in SWEEPS if name in args.sweeps for point in sweep(name)]
  additive = [point for width in KEY_WIDTHS if "d_k" in args.sweeps for point in scores(width)]
  measure(points + additive, args.rounds)
  fits = list(fitted(points))
  sequential, paths = list(chains()), list(path_rows())
  for rows in (fits, sequential, paths):
    print(report.table(rows), end="\n\n")
  report.finish(
    "table1", compared(additive), args.json, exponents=fits, sequential=sequential, paths=paths, points=plain(points)
  )
  if args.svg:
    import table1_picture

    table1_picture.draw(points, compared(additive), args.svg)


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="Table 1, measured.", allow_abbrev=False)
  sweeps = [*SWEEPS, "d_k"]
  parser.add_argument("--sweeps", nargs="+", choices=sweeps, default=sweeps, metavar="NAME", help="of n, d, k, r, d_k")
  parser.add_argument("--rounds", type=int, default=7, metavar="N", help="(default 7)")
  parser.add_argument("--svg", metavar="FILE", help="where a picture goes")
  report.add_arguments(parser, with_peers=False)
  return parser.parse_args()


# The measured programs.


def sweep(changing: str) -> Iterator[dict[str, Any]]:
  """The points of a sweep, with their programs."""
  values, others, layers = SWEEPS[changing]
  for name in layers:
    report.progress(f"{name}: {changing}")
    for value in values:
      sizes = others._replace(**{changing: value})
      for which, program in passes(ROWS[name].layer(sizes)).items():
        yield {"layer": name, "sweep": changing, "pass": which, "size": value, "program": program}


def scores(width: int) -> Iterator[dict[str, Any]]:
  """The points of additive and dot-product attention with d_k = `width`."""
  row, column = jax.ShapeDtypeStruct((POSITIONS, width), jnp.float32), jax.ShapeDtypeStruct((width,), jnp.float32)
  value = jax.ShapeDtypeStruct((POSITIONS, 64), jnp.float32)

  def dot_product(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    mask = jnp.ones((POSITIONS, POSITIONS), bool)
    return scaled_dot_product_attention(query[:, None], key[:, None], value[:, None], mask)[:, 0]

  def additive(query: jax.Array, key: jax.Array, value: jax.Array, weights: jax.Array) -> jax.Array:
    everything = jnp.ones(len(key), bool)

    def attend(one: jax.Array) -> jax.Array:
      return context_vector(masked_softmax(additive_score(one, key, weights), everything), value)

    return jax.vmap(attend)(query)

  kinds = {
    "dot-product": Layer(dot_product, (row, row, value)),
    "additive": Layer(additive, (row, row, value, column)),
  }
  for name, layer in kinds.items():
    for which, program in passes(layer).items():
      yield {"layer": name, "sweep": "d_k", "pass": which, "size": width, "program": program}


def passes(layer: Layer) -> dict[str, Program]:
  """The programs of a layer's forward pass, and of the forward pass with the gradients of input and parameters."""
  keys = iter(jax.random.split(jax.random.key(0), 100))
  arguments = jax.tree.map(lambda shape: jax.random.normal(next(keys), shape.shape) / 8, layer.shapes)
  cotangent = jnp.ones_like(jax.eval_shape(layer.function, *arguments))

  def both(cotangent: jax.Array, *arguments: Any) -> Any:
    result, backward = jax.vjp(layer.function, *arguments)
    return result, backward(cotangent)

  return {
    "forward": compiled(layer.function, arguments),
    "and backward": compiled(both, (cotangent, *arguments)),
  }


def compiled(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Program:
  executable = jax.jit(function).lower(*arguments).compile()
  trace = jax.make_jaxpr(function)(*arguments).jaxpr
  return Program(
    run=lambda: jax.block_until_ready(executable(*arguments)),
    products=operations.matmuls(trace),
    tanh=operations.count(trace)["tanh"],
    bytes=executable.memory_analysis().temp_size_in_bytes,
  )


def measure(points: list[dict[str, Any]], rounds: int) -> None:
  """Adds the seconds of each round to each point; the points take turns."""
  sides = {str(number): timed(point["program"].run) for number, point in enumerate(points)}
  for number, seconds in report.interleave(sides, rounds).items():
    points[int(number)]["seconds"] = seconds


def timed(run: Callable[[], Any]) -> Callable[[], float]:
  """A function that returns the seconds of one run."""

  def seconds(times: int) -> float:
    start = time.process_time()
    for _ in range(times):
      run()
    return (time.process_time() - start) / times

  run()
  times = math.ceil(LEAST_SECONDS / seconds(1))
  return functools.partial(seconds, times)


# The evaluation of the times.


def fitted(points: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
  """A row for each sweep of each layer type and pass."""
  best = max((point["program"].products / report.median(point["seconds"]) for point in points), default=0.0)
  keys = dict.fromkeys((point["layer"], point["sweep"], point["pass"]) for point in points)
  for layer, changing, which in keys:
    mine = [point for point in points if (layer, changing, which) == (point["layer"], point["sweep"], point["pass"])]
    row = {"layer": layer, "Table 1": ROWS[layer].complexity, "size": changing, "pass": which}
    exponents = ROWS[layer].exponents
    yield row | {"paper": exponents.get(changing) and str(exponents[changing])} | fit(above_the_floor(mine), best)


def above_the_floor(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
  quickest = min(report.median(point["seconds"]) for point in points)
  return [point for point in points if report.median(point["seconds"]) >= FLOOR * quickest]


def fit(points: list[dict[str, Any]], best: float) -> dict[str, Any]:
  """The exponents of the time and of the counted operations, over the same sizes."""
  if len(points) < 3:
    return {"measured": "overhead"}
  sizes = [point["size"] for point in points]
  times = [report.median(point["seconds"]) for point in points]
  rates = [point["program"].products / seconds for point, seconds in zip(points, times, strict=True)]
  exponent, r2 = power(sizes, times)
  return {
    "counted": power(sizes, [point["program"].products for point in points])[0],
    "measured": exponent,
    "R^2": f"{r2:.3f}",
    "range": f"{sizes[0]}-{sizes[-1]}",
    "spread": max(report.spread(point["seconds"]) for point in points),
    "of the best rate": f"{rates[0] / best:.1%} to {rates[-1] / best:.1%}",
  }


def power(sizes: list[int], values: list[float]) -> tuple[float, float]:
  """The exponent of value = c * size^exponent by least squares of the logarithms, and R^2."""
  x, y = np.log(sizes), np.log(values)
  slope, intercept = np.polyfit(x, y, 1)
  residual = np.sum((y - slope * x - intercept) ** 2)
  return float(slope), float(1 - residual / np.sum((y - y.mean()) ** 2))


def compared(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
  """Additive and dot-product attention side by side."""
  found = {(point["size"], point["pass"], point["layer"]): point for point in points}
  rows = []
  for width in dict.fromkeys(point["size"] for point in points):
    for which in PASSES:
      dot, additive = (found[width, which, name] for name in ("dot-product", "additive"))
      rows.append(
        {
          "d_k": str(width),
          "pass": which,
          "dot-product, ms": 1000 * report.median(dot["seconds"]),
          "additive, ms": 1000 * report.median(additive["seconds"]),
          "times as long": report.ratio(additive["seconds"], dot["seconds"]),
          "additive, tanh": additive["program"].tanh,
          "dot-product, MB": dot["program"].bytes / 1e6,
          "additive, MB": additive["program"].bytes / 1e6,
          "spread": max(report.spread(point["seconds"]) for point in (dot, additive)),
        }
      )
  return rows


def plain(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
  """The points as JSON values."""
  return [
    {name: value for name, value in point.items() if name != "program"} | {"products": point["program"].products}
    for point in points
  ]


# The properties that are not timed.


def chains() -> Iterator[dict[str, Any]]:
  """The longest chains of operations for some n."""
  for name, row in ROWS.items():
    lengths = {n: operations.sequential(row.traced(Sizes(n, d=64, k=3, r=16))) for n in (64, 128, 256)}
    yield {"layer": name, **{f"n = {n}": length for n, length in lengths.items()}}


def path_rows() -> Iterator[dict[str, Any]]:
  """The path lengths for some n, measured and by formula."""
  for k, r in ((3, 2), (5, 4)):
    found = {n: path_lengths(n, k, r) for n in (8, 16, 32)}
    for name in found[8]:
      cells = {f"n = {n}": f"{paths[name].found} ({paths[name].formula})" for n, paths in found.items()}
      yield {"layer": name, "k": str(k), "r": str(r), **cells}


if __name__ == "__main__":
  use_huge_pages()  # as train.py does
  programs.run(main)
