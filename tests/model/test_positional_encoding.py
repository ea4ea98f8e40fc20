import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.example import options
from transformer_jax.model.positional_encoding import PositionalEncoding, sinusoids
from transformer_jax.paper import formulas


@pytest.mark.parametrize("position", [0, 1, 2, 97, 1021, 10_007])
def test_sinusoids(position):
  d_model = 22
  result = sinusoids(jnp.array([position]), d_model)
  assert result.shape == (1, d_model) and result.dtype == jnp.float32
  # The angle is rounded to float32, and so is the frequency before it: about 2^-21 of the angle.
  np.testing.assert_allclose(result, formulas.sinusoids([position], d_model), atol=1e-6 + position * 2**-21)


def test_positions_may_have_any_shape():
  positions = np.arange(6).reshape(2, 3)
  of = jax.jit(sinusoids, static_argnums=1)
  result = of(positions, 14)
  assert result.shape == (2, 3, 14)
  np.testing.assert_array_equal(result[1, 2], of(np.array(5), 14))


def test_sinusoids_have_no_parameters():
  module = PositionalEncoding(options())
  result, params = module.init_with_output(jax.random.key(0), jnp.arange(7))
  assert not jax.tree.leaves(params)
  np.testing.assert_array_equal(result, sinusoids(jnp.arange(7), 22))


def test_learned_positions_are_rows_of_a_table_as_large_as_embeddings():
  module = PositionalEncoding(options(learned_positions=True))
  positions = jnp.array([0, 316, 5, 5])
  result, params = jax.jit(module.init_with_output)(jax.random.key(0), positions)
  (table,) = jax.tree.leaves(params)
  assert table.shape == (317, 22)
  np.testing.assert_allclose(result, np.asarray(table)[[0, 316, 5, 5]] * math.sqrt(22), rtol=1e-6)
  assert abs(np.mean(table)) < 0.01 and np.std(table) == pytest.approx(1 / math.sqrt(22), rel=0.05)  # by 6,974 numbers
