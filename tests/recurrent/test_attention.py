"""Scores and contexts against NumPy."""

import numpy as np
import pytest

from tests.model.example import normal
from transformer_jax.ops.masked_softmax import masked_softmax
from transformer_jax.paper.formulas import softmax
from transformer_jax.recurrent.attention import additive_score, context_vector, dot_score

SOURCE, SIZE, VALUE = 13, 7, 5


def test_dot_score():
  query, keys = normal(0, SIZE), normal(1, SOURCE, SIZE)
  np.testing.assert_allclose(dot_score(query, keys), [sum(query * key) for key in keys], atol=1e-6)


def test_additive_score():
  query, keys, v = normal(0, SIZE), normal(1, SOURCE, SIZE), normal(2, SIZE)
  expected = [sum(v[i] * np.tanh(query[i] + key[i]) for i in range(SIZE)) for key in keys]
  np.testing.assert_allclose(additive_score(query, keys, v), expected, atol=1e-6)


def test_context():
  scores, values, mask = normal(0, SOURCE), normal(1, SOURCE, VALUE), np.arange(SOURCE) % 3 != 1
  weights = masked_softmax(scores, mask)
  np.testing.assert_allclose(context_vector(weights, values), softmax(scores[mask]) @ values[mask], atol=1e-6)


@pytest.mark.parametrize("allowed", [[], [4]], ids=["nothing", "one"])
def test_context_of_little(allowed):
  values, mask = normal(1, SOURCE, VALUE), np.isin(np.arange(SOURCE), allowed)
  weights = masked_softmax(normal(0, SOURCE), mask)
  np.testing.assert_array_equal(context_vector(weights, values), values[allowed].sum(axis=0))
