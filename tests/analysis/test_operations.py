"""Operations counted from a trace, beside formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_jax.analysis import operations
from transformer_jax.runtime.errors import InputError

M, N, K = 3, 5, 7
LEFT, RIGHT = np.ones((M, K), np.float32), np.ones((K, N), np.float32)


def traced(function, *arguments):
  return jax.make_jaxpr(function)(*arguments).jaxpr


def test_matmuls():
  assert operations.matmuls(traced(jnp.dot, LEFT, RIGHT)) == 2 * M * N * K
  in_batches = traced(jax.vmap(jnp.dot), jnp.ones((11, M, K)), jnp.ones((11, K, N)))
  assert operations.matmuls(in_batches) == 11 * 2 * M * N * K


def test_the_gradient_has_two_matmuls_more():
  def loss(left, right):
    return jnp.sum(jnp.sin(left @ right))

  found = operations.count(traced(jax.value_and_grad(loss, argnums=(0, 1)), LEFT, RIGHT))
  assert found["dot_general"] == 3 * 2 * M * N * K
  assert (found["sin"], found["cos"]) == (M * N, M * N)


def test_loops_and_functions_count_as_often_as_they_are_called():
  inner = jax.jit(lambda x: jnp.tanh(x @ np.ones((K, K), np.float32)))

  def loop(x):
    return jax.lax.scan(lambda x, _: (inner(inner(x)), None), x, None, 11)[0]

  found = operations.count(traced(loop, LEFT))
  assert found["dot_general"] == 11 * 2 * 2 * M * K * K
  assert found["tanh"] == 11 * 2 * M * K


def test_of_a_conditional_the_most_of_its_branches():
  def either(x):
    return jax.lax.cond(x[0, 0] > 0, lambda x: x @ x.T @ x, lambda x: x, x)

  def other(x):
    return jax.lax.cond(x[0, 0] > 0, lambda x: x, lambda x: x @ x.T @ x, x)

  assert operations.matmuls(traced(either, LEFT)) == operations.matmuls(traced(other, LEFT)) == 2 * 2 * M * M * K
  condition = operations.sequential(traced(lambda x: jnp.int32(x[0, 0] > 0), LEFT))
  longest = operations.sequential(traced(lambda x: x @ x.T @ x, LEFT))
  assert longest >= 2
  assert [operations.sequential(traced(each, LEFT)) for each in (either, other)] == [condition + longest] * 2


def test_sequential_is_the_longest_chain():
  def function(x, y):
    slow = jnp.tanh(jnp.tanh(jnp.tanh(x)))
    return slow + y, jnp.tanh(y)

  assert operations.sequential(traced(function, LEFT, LEFT)) == 4
  assert operations.sequential(traced(lambda x: x, LEFT)) == 0


def test_in_a_loop_only_what_waits_for_the_step_before_is_sequential():
  def waits(x):
    return jax.lax.scan(lambda c, x: (jnp.tanh(c + x), None), jnp.float32(0), x)[0]

  def does_not_wait(x):
    return jax.lax.scan(lambda c, x: (c, jnp.tanh(x * x)), jnp.float32(0), x)[1]

  assert operations.sequential(traced(waits, jnp.ones(11))) == 2 * 11
  assert operations.sequential(traced(does_not_wait, jnp.ones(11))) == 2


def test_a_loop_without_a_number_of_steps_is_refused():
  endless = traced(lambda x: jax.lax.while_loop(lambda x: x < 3, lambda x: x + 1, x), 0.0)
  for count in (operations.matmuls, operations.sequential):
    with pytest.raises(InputError, match="while loop"):
      count(endless)
