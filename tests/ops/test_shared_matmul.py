import functools
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.example import normal
from transformer_jax.analysis import operations
from transformer_jax.ops.shared_matmul import dot_general, shared_matmul

MANY, MORE, N, K, M = 3, 2, 11, 5, 7


def test_it_is_the_product():
  x, matrix = normal(1, N, K), normal(2, K, M)
  expected = x.astype(np.float64) @ matrix
  np.testing.assert_allclose(shared_matmul(x, matrix), expected, atol=1e-6)
  np.testing.assert_allclose(jax.jit(shared_matmul)(x, matrix), expected, atol=1e-6)
  low = shared_matmul(jnp.asarray(x, jnp.bfloat16), jnp.asarray(matrix, jnp.bfloat16))
  assert low.dtype == jnp.bfloat16
  np.testing.assert_allclose(low.astype(jnp.float32), expected, atol=0.03 * np.abs(expected).max())


@pytest.mark.parametrize(
  ("x_shape", "matrix_shape", "axes"),
  [
    ((MANY, N, K), (K, M), (0, None)),
    ((N, MANY, K), (K, M), (1, None)),
    ((N, K, MANY), (K, M), (2, None)),
    ((N, K), (MANY, K, M), (None, 0)),
    ((MANY, N, K), (K, M, MANY), (0, 2)),
  ],
)
def test_under_vmap_it_is_the_product_of_each_and_has_its_gradients(x_shape, matrix_shape, axes):
  x, matrix, into = normal(1, *x_shape), normal(2, *matrix_shape), normal(3, MANY, N, M)

  def value_and_gradients(function):
    def loss(x, matrix):
      products = jax.vmap(function, axes)(x, matrix)
      return jnp.sum(into * products), products

    gradients, products = jax.jit(jax.grad(loss, (0, 1), has_aux=True))(x, matrix)
    return products, *gradients

  for found, expected in zip(value_and_gradients(shared_matmul), value_and_gradients(jnp.matmul), strict=True):
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_gradients_of_a_sum_over_mapped_rows_are_those_of_numpy():
  x, matrix, into = normal(1, MORE, MANY, N, K), normal(2, K, M), normal(3, MORE, MANY, N, M)

  def loss(x, matrix):
    return jnp.sum(into * jax.vmap(jax.vmap(shared_matmul, (0, None)), (0, None))(x, matrix))

  by_x, by_matrix = jax.jit(jax.grad(loss, (0, 1)))(x, matrix)
  np.testing.assert_allclose(by_x, into @ matrix.T, atol=1e-5)
  np.testing.assert_allclose(by_matrix, x.reshape(-1, K).T @ into.reshape(-1, M), atol=1e-4)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("n", "m"), [(N, M), (2, 3 * M)])  # the gradient of W transposes x, or the gradient
def test_bfloat16_is_rounded_once(transposed, n, m):
  x, matrix, into = (jnp.asarray(a, jnp.bfloat16) for a in (normal(1, n, K), normal(2, K, m), normal(3, n, m)))

  def products(x, matrix):
    return shared_matmul(x, matrix.T if transposed else matrix, transposed=transposed, dtype=jnp.float32)

  logits, gradients_of = jax.vjp(products, x, matrix)
  exact_x, exact_matrix, exact_into = (np.asarray(a, np.float64) for a in (x, matrix, into))
  assert logits.dtype == jnp.float32
  np.testing.assert_allclose(logits, exact_x @ exact_matrix, rtol=1e-5, atol=1e-5)
  by_x, by_matrix = gradients_of(into.astype(jnp.float32))
  for found, expected in ((by_x, exact_into @ exact_matrix.T), (by_matrix, exact_x.T @ exact_into)):
    assert found.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(found, np.float64), expected, rtol=2**-8, atol=1e-5)


@pytest.mark.skipif(
  not Path("/proc/cpuinfo").is_file() or "avx512_bf16" not in Path("/proc/cpuinfo").read_text(),
  reason="the processor has no bfloat16",
)
@pytest.mark.parametrize("transposed", [False, True])
def test_a_cpu_computes_in_bfloat16(transposed):
  x, matrix = jnp.zeros((64, 32), jnp.bfloat16), jnp.zeros((48, 32) if transposed else (32, 48), jnp.bfloat16)

  def loss(x, matrix):
    return jnp.sum(jnp.sin(shared_matmul(x, matrix, transposed=transposed, dtype=jnp.float32)))

  program = jax.jit(jax.grad(loss, (0, 1))).lower(x, matrix).compile().as_text()
  with_dots = [part for part in re.split(r"\n(?=%|ENTRY )", program) if " dot(" in part]
  assert len(with_dots) == 3
  assert all(re.findall(r"= (\w+)\[.*\]\S* parameter", part) == ["bf16", "bf16"] for part in with_dots)


@pytest.mark.long
def test_forward_second_and_recomputed_derivatives():
  x, matrix = normal(1, N, K), normal(2, K, M)

  def energy(product, matrix):
    return jnp.sum(jnp.tanh(shared_matmul(x, matrix)) ** 2)

  for transform in (jax.jacfwd, jax.hessian, lambda f: jax.grad(jax.checkpoint(f))):
    found, expected = (transform(functools.partial(energy, p))(matrix) for p in (shared_matmul, jnp.matmul))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_batch_is_one_product_of_two_matrices_forward_and_by_each_of_them():
  """What it is for: no sum over two axes, whose operand XLA on a CPU would have to turn."""
  x, matrix = jnp.zeros((MANY, N, K)), jnp.zeros((K, M))

  def loss(x, matrix):
    return jnp.sum(jnp.sin(jax.vmap(shared_matmul, (0, None))(x, matrix)))

  traced = jax.make_jaxpr(jax.grad(loss, (0, 1)))(x, matrix).jaxpr
  matmuls = [e for e in traced.eqns if e.primitive.name in ("shared_matmul", "dot_general")]
  assert [[v.aval.shape for v in e.invars] for e in matmuls] == [
    [(MANY * N, K), (K, M)],
    [(MANY * N, K), (MANY * N, M)],
    [(MANY * N, M), (K, M)],
  ]
  assert operations.matmuls(traced) == 3 * 2 * MANY * N * K * M


@pytest.mark.parametrize(("axes", "kernel"), [((1,), (K, M)), ((1, 2), (K, 2, M)), ((1,), (K, 2, M))])
def test_of_flax_dense_layers(axes, kernel):
  x = normal(1, N, *kernel[: len(axes)])
  dimensions = (axes, tuple(range(len(axes)))), ((), ())
  found = dot_general(x, normal(2, *kernel), dimensions)
  np.testing.assert_allclose(found, jax.lax.dot_general(x, normal(2, *kernel), dimensions), atol=1e-5)
