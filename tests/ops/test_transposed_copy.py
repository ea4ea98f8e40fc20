import jax
import numpy as np
import pytest

from tests.model.example import normal
from transformer_jax.ops.transposed_copy import transposed_copy


@pytest.mark.parametrize("first", [0.5, np.nan, np.inf, -np.inf])
def test_it_is_the_transpose(first):
  x = normal(1, 5, 7)
  x[0, 0] = first
  np.testing.assert_array_equal(transposed_copy(x), x.T)
  np.testing.assert_array_equal(jax.jit(jax.vmap(transposed_copy))(np.stack([x, -x])), np.stack([x.T, -x.T]))
