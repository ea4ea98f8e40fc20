"""Products with a matrix that all sequences of a batch share."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

_shared_product = Primitive("shared_product")


def shared_product(x: jax.Array, matrix: jax.Array) -> jax.Array:
  """x W, for which `jax.vmap` over many x makes one long x of them.

  The product of a batch is then one of two matrices, and so is its gradient by W. With
  `jnp.matmul` that gradient is a sum over two axes, sequences and positions, for which
  XLA on a CPU first turns all of x.

  Args:
    x: `[n, k]`.
    matrix: W, `[k, m]`, of the same type.

  Returns:
    `[n, m]` of that type.
  """
  return _shared_product.bind(x, matrix)


def dot_general(
  x: jax.Array, kernel: jax.Array, dimension_numbers: jax.lax.DotDimensionNumbers, precision: None = None, **_: None
) -> jax.Array:
  """`shared_product` for Flax's dense layers, which contract the last axes of x with the first ones of the kernel."""
  (contracted, _), batch = dimension_numbers
  kept = x.ndim - len(contracted)
  assert tuple(contracted) == tuple(range(kept, x.ndim)) and not any(batch) and precision is None
  inputs = math.prod(x.shape[kept:])
  product = shared_product(x.reshape(-1, inputs), kernel.reshape(inputs, -1))
  return product.reshape(*x.shape[:kept], *kernel.shape[len(contracted) :])


def _plain(x: jax.Array, matrix: jax.Array) -> jax.Array:
  return jax.lax.dot(x, matrix)


def _under_vmap(operands: tuple[jax.Array, jax.Array], axes: tuple[int | None, int | None]) -> tuple[jax.Array, int]:
  x, matrix = operands
  if axes[1] is not None:  # a matrix for each
    return jax.vmap(_plain, axes)(x, matrix), 0
  x = jnp.moveaxis(x, axes[0] or 0, 0)
  many, n, k = x.shape
  return shared_product(x.reshape(many * n, k), matrix).reshape(many, n, -1), 0


def _by_x(gradient: jax.Array, x: Any, matrix: jax.Array) -> jax.Array:
  return shared_product(gradient, matrix.T)


def _by_matrix(gradient: jax.Array, x: jax.Array, matrix: Any) -> jax.Array:
  return jax.lax.dot_general(x, gradient, (((0,), (0,)), ((), ())))  # sum over n


_shared_product.def_impl(jax.jit(_plain))
_shared_product.def_abstract_eval(lambda x, matrix: x.update(shape=(x.shape[0], matrix.shape[1])))
mlir.register_lowering(_shared_product, mlir.lower_fun(_plain, multiple_results=False))
batching.primitive_batchers[_shared_product] = _under_vmap
ad.defbilinear(_shared_product, _by_x, _by_matrix)
