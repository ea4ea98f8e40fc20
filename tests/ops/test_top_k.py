import math

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_jax.ops.top_k import top_k

# n, k and block; above 2 * k * block the blocks' maxima are used.
SHAPES = [
  *[(n, k, 7) for n, k in ((7, 7), (42, 3), (43, 3), (47, 1), (49, 3), (90, 5), (211, 13))],
  *[(n, k, 128) for n, k in ((5, 2), (768, 3), (769, 3), (1024, 3), (1499, 5), (4999, 4))],
]


@pytest.mark.long
@given(st.sampled_from(SHAPES), st.integers(0, 2**32), st.integers(1, 5), st.booleans())
def test_top_k_equals_that_of_jax(shape, seed, distinct, infinite):
  """Values and indices, with many equal values."""
  n, k, block = shape
  generator = np.random.default_rng(seed)
  levels = generator.normal(size=distinct).astype(np.float32)
  if infinite:
    levels[0] = -math.inf
  # Of the rarer levels there may be fewer than k.
  values = levels[np.minimum(generator.geometric(0.5 if seed % 2 else 0.02, size=(3, n)) - 1, distinct - 1)]
  found = jax.jit(jax.vmap(lambda row: top_k(row, k, block)))(values)
  expected = jax.lax.top_k(values, k)
  for a, b in zip(found, expected, strict=True):
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a, b)
  np.testing.assert_array_equal(found[1], np.argsort(-values, axis=1, kind="stable")[:, :k])
