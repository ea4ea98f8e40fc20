import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model import reference
from tests.model.example import CONFIG, float64, normal, options, perturbed
from transformer_jax.model.attention import MultiHeadAttention, attention_weights, scaled_dot_product_attention
from transformer_jax.model.config import Dtype

QUERY, KEY, HEADS, D_K, D_V = 11, 13, 3, 5, 7
LONELY = 4  # a query that may look at nothing


@pytest.fixture
def mask():
  mask = np.random.default_rng(0).random((QUERY, KEY)) < 0.6
  mask[LONELY] = False
  return mask


@pytest.fixture
def qkv():
  return normal(1, QUERY, HEADS, D_K), normal(2, KEY, HEADS, D_K), normal(3, KEY, HEADS, D_V)


def test_equation_1(qkv, mask):
  query, key, value = qkv
  result = scaled_dot_product_attention(query, key, value, mask)
  assert result.shape == (QUERY, HEADS, D_V)
  for head in range(HEADS):
    expected = reference.attention(*(x[:, head].astype(np.float64) for x in qkv), mask)
    np.testing.assert_allclose(result[:, head], expected, atol=1e-6)


def test_weights_are_a_distribution_over_what_the_mask_allows(qkv, mask):
  weights = attention_weights(*qkv[:2], mask)
  assert weights.shape == (HEADS, QUERY, KEY) and weights.dtype == jnp.float32
  assert not np.any(np.asarray(weights)[:, ~mask])
  expected = np.broadcast_to(mask.any(axis=1), (HEADS, QUERY))
  np.testing.assert_allclose(weights.sum(axis=-1), expected, atol=1e-6)


def test_a_query_that_may_look_at_nothing_gives_0_and_finite_gradients(qkv, mask):
  result = scaled_dot_product_attention(*qkv, mask)
  assert not np.any(result[LONELY])
  gradients = jax.grad(lambda qkv: jnp.sum(scaled_dot_product_attention(*qkv, mask) ** 2))(qkv)
  assert all(np.all(np.isfinite(g)) for g in gradients)
  assert not np.any(gradients[0][LONELY])


def test_large_scores_do_not_overflow(qkv, mask):
  query, key, value = qkv
  result = scaled_dot_product_attention(1e6 * query, 1e6 * key, value, mask)
  assert np.all(np.isfinite(result)) and np.max(np.abs(result)) <= np.max(np.abs(value)) + 1e-6


@pytest.mark.parametrize("bias", [False, True])
def test_multi_head(bias, mask):
  module = MultiHeadAttention(options(attention_bias=bias))
  x, source = normal(4, QUERY, CONFIG.d_model), normal(5, KEY, CONFIG.d_model)
  params = perturbed(module.init(jax.random.key(0), x, source, mask, deterministic=True)["params"])
  assert ("bias" in params["query"]) == ("bias" in params["output"]) == bias
  result = module.apply({"params": params}, x, source, mask, deterministic=True)
  np.testing.assert_allclose(result, reference.multi_head(float64(params), x, source, mask), atol=3e-6)


def test_projections_have_the_sizes_of_the_paper_and_glorot_uniform_values(mask):
  config = options(d_model=62)
  module = MultiHeadAttention(config)
  x = normal(4, QUERY, config.d_model)
  params = module.init(jax.random.key(0), x, x, mask[:, :QUERY], deterministic=True)["params"]
  for name, shape in {"query": (62, 3, 5), "key": (62, 3, 5), "value": (62, 3, 7), "output": (3, 7, 62)}.items():
    kernel = params[name]["kernel"]
    assert kernel.shape == shape
    heads_size = 3 * (5 if name in ("query", "key") else 7)
    limit = np.sqrt(6 / (62 + heads_size))  # Glorot & Bengio 2010, eq. 16, of the matrix W
    assert 0.98 * limit < np.max(np.abs(kernel)) <= limit


def test_in_bfloat16_the_parameters_and_the_softmax_stay_float32(qkv, mask):
  low = [jnp.asarray(x, jnp.bfloat16) for x in qkv]
  assert attention_weights(*low[:2], mask).dtype == jnp.float32
  module = MultiHeadAttention(options(dtype=Dtype.BFLOAT16))
  x = jnp.asarray(normal(4, QUERY, CONFIG.d_model), jnp.bfloat16)
  params = module.init(jax.random.key(0), x, x, mask[:, :QUERY], deterministic=True)["params"]
  assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float32")}
  assert module.apply({"params": params}, x, x, mask[:, :QUERY], deterministic=True).dtype == jnp.bfloat16


def test_weights_are_dropped_only_by_option(mask):
  x, source = normal(4, QUERY, CONFIG.d_model), normal(5, KEY, CONFIG.d_model)
  plain = MultiHeadAttention(options(dropout=0.5))
  params = plain.init(jax.random.key(0), x, source, mask, deterministic=True)
  exact = plain.apply(params, x, source, mask, deterministic=True)
  rngs = {"dropout": jax.random.key(1)}
  np.testing.assert_array_equal(plain.apply(params, x, source, mask, deterministic=False, rngs=rngs), exact)
  dropping = MultiHeadAttention(dataclasses.replace(plain.config, attention_dropout=0.5))
  assert not np.allclose(dropping.apply(params, x, source, mask, deterministic=False, rngs=rngs), exact)
  np.testing.assert_array_equal(dropping.apply(params, x, source, mask, deterministic=True), exact)
