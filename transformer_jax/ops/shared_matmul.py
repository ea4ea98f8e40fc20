"""Matmuls with a matrix that all sequences of a batch share."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

_shared_matmul = Primitive("shared_matmul")


def shared_matmul(x: jax.Array, matrix: jax.Array) -> jax.Array:
  """Computes x W; under `jax.vmap` over x the rows of all x are one long x.

  So a batch needs one matmul of two matrices, and the gradient with respect to W
  needs one. With `jnp.matmul` that gradient is a sum over two axes, sequences and
  positions, for which XLA on a CPU first transposes all of x.

  Args:
    x: `[n, k]`.
    matrix: W, `[k, m]`, of the same type.

  Returns:
    `[n, m]` of that type.
  """
  return _shared_matmul.bind(x, matrix)


def dot_general(
  x: jax.Array,
  kernel: jax.Array,
  dimension_numbers: jax.lax.DotDimensionNumbers,
  precision: None = None,
  **options: None,
) -> jax.Array:
  """`shared_matmul` for Flax's dense layers, which contract the last axes of x with the first axes of the kernel."""
  (contracted, _), batch = dimension_numbers
  kept = x.ndim - len(contracted)
  assert tuple(contracted) == tuple(range(kept, x.ndim)) and not any(batch) and precision is None
  inputs = math.prod(x.shape[kept:])
  result = shared_matmul(x.reshape(-1, inputs), kernel.reshape(inputs, -1))
  return result.reshape(*x.shape[:kept], *kernel.shape[len(contracted) :])


def _plain(x: jax.Array, matrix: jax.Array) -> jax.Array:
  return jax.lax.dot(x, matrix)


def _under_vmap(operands: tuple[jax.Array, jax.Array], axes: tuple[int | None, int | None]) -> tuple[jax.Array, int]:
  x, matrix = operands
  if axes[1] is not None:  # each x has its own matrix
    return jax.vmap(_plain, axes)(x, matrix), 0
  x = jnp.moveaxis(x, axes[0] or 0, 0)
  many, n, k = x.shape
  return shared_matmul(x.reshape(many * n, k), matrix).reshape(many, n, -1), 0


def _gradient_of_x(gradient: jax.Array, x: Any, matrix: jax.Array) -> jax.Array:
  return shared_matmul(gradient, matrix.T)


def _gradient_of_matrix(gradient: jax.Array, x: jax.Array, matrix: Any) -> jax.Array:
  return jax.lax.dot_general(x, gradient, (((0,), (0,)), ((), ())))  # sum over n


_shared_matmul.def_impl(jax.jit(_plain))
_shared_matmul.def_abstract_eval(lambda x, matrix: x.update(shape=(x.shape[0], matrix.shape[1])))
mlir.register_lowering(_shared_matmul, mlir.lower_fun(_plain, multiple_results=False))
batching.primitive_batchers[_shared_matmul] = _under_vmap
ad.defbilinear(_shared_matmul, _gradient_of_x, _gradient_of_matrix)
