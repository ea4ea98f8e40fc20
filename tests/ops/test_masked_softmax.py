"""The masked softmax against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np

from tests.model.example import normal
from transformer_jax.ops.masked_softmax import masked_softmax
from transformer_jax.paper.formulas import softmax

ROWS, KEYS = 5, 13
MASK = np.arange(ROWS * KEYS).reshape(ROWS, KEYS) % 3 != 1


def test_softmax_of_what_the_mask_allows():
  # Also of scores that would overflow, and of those below what a mask that only adds -1e9 leaves.
  for scores in (normal(0, ROWS, KEYS), 1e4 * normal(1, ROWS, KEYS), normal(2, ROWS, KEYS) - 1e30):
    found = np.asarray(masked_softmax(scores, MASK))
    assert found.dtype == np.float32
    assert not np.any(found[~MASK])
    for row, expected, allowed in zip(found, scores, MASK, strict=True):
      np.testing.assert_allclose(row[allowed], softmax(expected[allowed]), atol=1e-6)


def test_nothing_is_allowed():
  scores, mask = normal(0, ROWS, KEYS), np.array(MASK)
  mask[2] = False
  gradient = jax.grad(lambda scores: jnp.sum(masked_softmax(scores, mask) ** 2))(scores)
  assert not np.any(masked_softmax(scores, mask)[2])
  np.testing.assert_array_equal(np.any(gradient, axis=1), np.arange(ROWS) != 2)
  assert np.all(np.isfinite(gradient))
