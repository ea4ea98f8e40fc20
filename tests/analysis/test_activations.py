"""The rules for what a backward pass keeps, on functions whose results are all kept."""

import jax
import jax.numpy as jnp
import pytest

from transformer_jax.analysis.activations import kept_bytes

X = jax.ShapeDtypeStruct((3, 5), jnp.float32)
W = jax.ShapeDtypeStruct((5, 7), jnp.bfloat16)
MARGIN = 1.1


def bytes_of(function, *shapes, cpu=True):
  return kept_bytes(jax.make_jaxpr(function)(*shapes).jaxpr, cpu=cpu)


@pytest.mark.parametrize(
  ("function", "expected"),
  [
    (lambda x: (x, jnp.zeros((11, 13))), 0),  # inputs and constants
    (lambda x: jnp.sin(x), 3 * 5 * 4),
    (lambda x: (y := jnp.sin(x), y.reshape(15), y.T), 3 * 5 * 4),  # one array in three shapes
    (lambda x: jnp.broadcast_to(jnp.sin(x)[:, None], (3, 17, 5)), 3 * 5 * 4),  # the small array is kept
    (lambda x: x > 0, 3 * 5),
    (lambda x: jnp.exp(x), 2 * 3 * 5 * 4),  # with the softmax's denominator
    (lambda x: jnp.where(jnp.broadcast_to(jnp.sin(x[0]), (3, 5)) > 0, x, 0), 3 * 5 * 4),
  ],
)
def test_float32(function, expected):
  assert bytes_of(function, X) == round(MARGIN * expected)


def test_a_scan_has_the_gradients_of_what_it_reads():
  """Those of numbers, step by step; its state and its constants are no such arrays."""

  def states(x, w):
    return jax.lax.scan(lambda state, read: (state + read[0] * w, None), jnp.zeros(5), (x, x > 0))[0]

  assert bytes_of(states, X, jax.ShapeDtypeStruct((5,), jnp.float32)) == round(MARGIN * 5 * 4 + 1.5 * 3 * 5 * 4)
  assert bytes_of(states, X, jax.ShapeDtypeStruct((5,), jnp.float32), cpu=False) == 5 * 4


def test_a_bfloat16_operand_of_a_matmul_takes_four_bytes():
  def both(x, w):
    operand, other = x.astype(jnp.bfloat16), jnp.sin(x).astype(jnp.bfloat16)
    return operand, other, (operand @ w).sum()

  assert bytes_of(both, X, W) == round(MARGIN * (3 * 5 * 4 + 3 * 5 * 2 + 2))


@pytest.mark.parametrize(
  ("function", "expected"),
  [
    (lambda x: (x, jnp.zeros((11, 13)), x + 1, x * x), 0),  # what follows from inputs and constants
    (lambda x: jnp.sin(x), 3 * 5 * 4),
    (lambda x: jnp.exp(x), 3 * 5 * 4),
    (lambda x: (y := jnp.sin(x), 2 * y, y / x, (y - 1).astype(jnp.bfloat16)), 3 * 5 * 4),
    (
      lambda x: (2 * (y := jnp.sin(x)), y - jnp.sin(x).sum()),
      3 * 5 * 4,
    ),  # 2y is kept as y, and a small sum is computed again
    (lambda x: (y := jnp.sin(x), jnp.sin(y)), 2 * 3 * 5 * 4),  # not cheap
    (lambda x: jnp.sin(x) > 0, 3 * 5 * 4),  # kept as sin(x)
    (lambda x: ((y := jnp.sin(x)) > 0, jax.nn.relu(y)), 3 * 5 * 4),
    (lambda x: jnp.sin(x) > jnp.cos(x), 3 * 5),
    (lambda x: ((y := jnp.sin(x)) * 2, 3 * y, y / 2), 3 * 5 * 4),
    (lambda x: jnp.sin(x).astype(jnp.bfloat16), 3 * 5 * 2),  # sin(x) itself is not kept
  ],
)
def test_an_accelerator_computes_again_what_is_cheap(function, expected):
  assert bytes_of(function, X, cpu=False) == expected


@pytest.mark.parametrize("factors", [(1,), (2,), (2, 3)])
def test_an_accelerator_stores_the_operands_of_matmuls_as_they_are(factors):
  def both(x, w):
    y = jnp.sin(x)
    operands = [factor * y.astype(jnp.bfloat16) for factor in factors]
    return y, operands, [(operand @ w).sum() for operand in operands]

  assert bytes_of(both, X, W, cpu=False) == 3 * 5 * 4 + len(factors) * (3 * 5 * 2 + 2)


def test_a_long_chain_is_looked_at_once():
  def chain(x):
    y = jnp.sin(x)
    for _ in range(700):
      y = y * y + y
    return y

  assert bytes_of(chain, X, cpu=False) == 3 * 5 * 4
