import numpy as np

from tests.model.example import normal
from transformer_jax.paper.formulas import softmax
from transformer_jax.paper.table1.additive import additive_attention

QUERY, KEY, D_K, D_V = 11, 13, 5, 7


def test_scores_are_of_a_hidden_layer_of_each_pair():
  query, key, value, weights = normal(0, QUERY, D_K), normal(1, KEY, D_K), normal(2, KEY, D_V), normal(3, D_K)
  result = additive_attention(query, key, value, weights)
  assert result.shape == (QUERY, D_V)
  for i, q in enumerate(query.astype(np.float64)):
    expected = softmax(np.array([np.tanh(q + k) @ weights for k in key])) @ value
    np.testing.assert_allclose(result[i], expected, atol=1e-5)
