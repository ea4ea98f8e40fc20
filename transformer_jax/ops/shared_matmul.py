"""Matmuls with a matrix that all sequences of a batch share."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.typing import DTypeLike

from transformer_jax.ops.transposed_copy import transposed_copy

_shared_matmul = Primitive("shared_matmul")


def shared_matmul(
  x: jax.Array, matrix: jax.Array, *, transposed: bool = False, dtype: DTypeLike | None = None
) -> jax.Array:
  """Computes x W, or x W^T; under `jax.vmap` over x the rows of all x are one long x.

  So a batch needs one matmul of two matrices, and the gradient with respect to W
  needs one. With `jnp.matmul` that gradient is a sum over two axes, sequences and
  positions, for which XLA on a CPU first transposes all of x.

  Args:
    x: `[n, k]`.
    matrix: W, of the same type, `[k, m]`; if `transposed`, `[m, k]`.
    transposed: whether x is multiplied by W^T.
    dtype: the type of the result; None means that of `x`. A gradient is
      computed from a cotangent in the type of `x`.

  Returns:
    `[n, m]`.
  """
  return _shared_matmul.bind(x, matrix, transposed=transposed, dtype=np.dtype(dtype or x.dtype))


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


def _plain(x: jax.Array, matrix: jax.Array, *, transposed: bool, dtype: DTypeLike) -> jax.Array:
  return jax.lax.dot_general(x, matrix, (((1,), (int(transposed),)), ((), ())), preferred_element_type=dtype)


def _on_cpu(x: jax.Array, matrix: jax.Array, *, transposed: bool, dtype: DTypeLike) -> jax.Array:
  """`_plain`, computed in bfloat16 if the operands are bfloat16.

  XLA's matmuls on CPUs are in bfloat16 only if the result is float32 and neither operand has to be transposed. It
  converts the operands of all others to float32.
  """
  if x.dtype != jnp.bfloat16:
    return _plain(x, matrix, transposed=transposed, dtype=dtype)
  matrix = transposed_copy(matrix) if transposed else matrix
  return _plain(x, matrix, transposed=False, dtype=jnp.float32).astype(dtype)


def _under_vmap(
  operands: tuple[jax.Array, jax.Array], axes: tuple[int | None, int | None], *, transposed: bool, dtype: DTypeLike
) -> tuple[jax.Array, int]:
  x, matrix = operands
  if axes[1] is not None:  # each x has its own matrix
    return jax.vmap(lambda x, matrix: _plain(x, matrix, transposed=transposed, dtype=dtype), axes)(x, matrix), 0
  x = jnp.moveaxis(x, axes[0] or 0, 0)
  many, n, k = x.shape
  return shared_matmul(x.reshape(many * n, k), matrix, transposed=transposed, dtype=dtype).reshape(many, n, -1), 0


def _gradient_of_x(
  gradient: jax.Array, x: object, matrix: jax.Array, *, transposed: bool, dtype: DTypeLike
) -> jax.Array:
  return shared_matmul(gradient.astype(matrix.dtype), matrix, transposed=not transposed)


def _gradient_of_matrix(
  gradient: jax.Array, x: jax.Array, matrix: object, *, transposed: bool, dtype: DTypeLike
) -> jax.Array:
  gradient = gradient.astype(x.dtype)
  return _sum_over_rows(gradient, x) if transposed else _sum_over_rows(x, gradient)


def _sum_over_rows(x: jax.Array, y: jax.Array) -> jax.Array:
  """x^T y: `[n, k]`, `[n, m]` -> `[k, m]`."""
  if x.dtype != jnp.bfloat16:
    return _sum_plainly(x, y)
  return jax.lax.platform_dependent(x, y, cpu=_sum_on_cpu, default=_sum_plainly)


def _sum_plainly(x: jax.Array, y: jax.Array) -> jax.Array:
  return jax.lax.dot_general(x, y, (((0,), (0,)), ((), ())))


def _sum_on_cpu(x: jax.Array, y: jax.Array) -> jax.Array:
  """`_sum_plainly` as a matmul that XLA computes in bfloat16 (see `_on_cpu`), with few numbers to transpose."""
  if x.size <= y.size + x.shape[1] * y.shape[1]:
    return jax.lax.dot(transposed_copy(x), y, preferred_element_type=jnp.float32).astype(x.dtype)
  return transposed_copy(jax.lax.dot(transposed_copy(y), x, preferred_element_type=jnp.float32).astype(x.dtype))


def _shape(x: ShapedArray, matrix: ShapedArray, *, transposed: bool, dtype: DTypeLike) -> ShapedArray:
  return x.update(shape=(x.shape[0], matrix.shape[0 if transposed else 1]), dtype=dtype)


_shared_matmul.def_impl(jax.jit(_plain, static_argnames=("transposed", "dtype")))
_shared_matmul.def_abstract_eval(_shape)
mlir.register_lowering(_shared_matmul, mlir.lower_fun(_plain, multiple_results=False))
mlir.register_lowering(_shared_matmul, mlir.lower_fun(_on_cpu, multiple_results=False), platform="cpu")
batching.primitive_batchers[_shared_matmul] = _under_vmap
ad.defbilinear(_shared_matmul, _gradient_of_x, _gradient_of_matrix)
