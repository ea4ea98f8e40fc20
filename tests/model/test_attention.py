import dataclasses
import functools
import os
import shutil
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.example import CONFIG, float64, module_params, normal, options
from transformer_jax.model import attention
from transformer_jax.model.attention import (
  MultiHeadAttention,
  attention_weights,
  fused_attention,
  scaled_dot_product_attention,
)
from transformer_jax.model.config import Dtype
from transformer_jax.paper import formulas

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
    expected = formulas.attention(*(x[:, head].astype(np.float64) for x in qkv), mask)
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
  gradients = jax.jit(jax.grad(lambda qkv: jnp.sum(scaled_dot_product_attention(*qkv, mask) ** 2)))(qkv)
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
  params = module_params(module, x, source, mask, deterministic=True)
  assert ("bias" in params["query"]) == ("bias" in params["output"]) == bias
  result = jax.jit(lambda: module.apply({"params": params}, x, source, mask, deterministic=True))()
  np.testing.assert_allclose(result, formulas.multi_head(float64(params), x, source, mask), atol=3e-6)


def test_projections_have_the_sizes_of_the_paper_and_glorot_uniform_values(mask):
  config = options(d_model=62)
  module = MultiHeadAttention(config)
  x = normal(4, QUERY, config.d_model)
  params = jax.jit(lambda: module.init(jax.random.key(0), x, x, mask[:, :QUERY], deterministic=True))()["params"]
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
  params = jax.eval_shape(lambda: module.init(jax.random.key(0), x, x, mask[:, :QUERY], deterministic=True))["params"]
  assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float32")}
  apply = functools.partial(module.apply, deterministic=True)
  assert jax.eval_shape(apply, {"params": params}, x, x, mask[:, :QUERY]).dtype == jnp.bfloat16


def test_weights_are_dropped_only_by_option(mask):
  x, source = normal(4, QUERY, CONFIG.d_model), normal(5, KEY, CONFIG.d_model)
  plain = MultiHeadAttention(options(dropout=0.5))
  params = {"params": module_params(plain, x, source, mask, deterministic=True)}
  exact = plain.apply(params, x, source, mask, deterministic=True)
  rngs = {"dropout": jax.random.key(1)}
  np.testing.assert_array_equal(plain.apply(params, x, source, mask, deterministic=False, rngs=rngs), exact)
  dropping = MultiHeadAttention(dataclasses.replace(plain.config, attention_dropout=0.5))
  assert not np.allclose(dropping.apply(params, x, source, mask, deterministic=False, rngs=rngs), exact)
  np.testing.assert_array_equal(dropping.apply(params, x, source, mask, deterministic=True), exact)


def test_fused_attention_is_equation_1_and_has_its_gradients(mask):
  """The formula of `jax.nn` takes what cuDNN's kernel takes."""
  rows = 3
  masks = np.stack([mask, ~mask, mask[::-1]])
  qkv = normal(1, rows, QUERY, HEADS, D_K), normal(2, rows, KEY, HEADS, D_K), normal(3, rows, KEY, HEADS, D_K)
  into = normal(4, rows, QUERY, HEADS, D_K)

  def of(function):
    of_rows = jax.jit(jax.vmap(function))
    return jax.jit(jax.grad(lambda qkv: jnp.sum(into * of_rows(*qkv, masks)))), of_rows(*qkv, masks)

  (plain, expected), (fused, found) = (
    of(scaled_dot_product_attention),
    of(functools.partial(fused_attention, implementation="xla")),
  )
  np.testing.assert_allclose(found, expected, atol=1e-6)
  assert not np.any(found[0, LONELY])
  for one, other in zip(fused(qkv), plain(qkv), strict=True):
    np.testing.assert_allclose(one, other, atol=3e-6)


def test_fused_attention_is_of_training_alone(mask, monkeypatch):
  called = []

  def fused(*arguments):
    called.append([x.shape for x in arguments])
    return scaled_dot_product_attention(*arguments)

  monkeypatch.setattr(attention, "fused_attention", fused)
  plain = MultiHeadAttention(options(d_k=8, d_v=8, dtype=Dtype.BFLOAT16))
  module = MultiHeadAttention(dataclasses.replace(plain.config, fused_attention=True))
  x, source = normal(4, QUERY, CONFIG.d_model), normal(5, KEY, CONFIG.d_model)
  params = {"params": module_params(module, x, source, mask, deterministic=True)}
  expected = plain.apply(params, x, source, mask, deterministic=True)
  np.testing.assert_array_equal(module.apply(params, x, source, mask, deterministic=True), expected)
  assert not called
  np.testing.assert_array_equal(module.apply(params, x, source, mask, deterministic=False), expected)
  assert called == [[(QUERY, HEADS, 8), (KEY, HEADS, 8), (KEY, HEADS, 8), (QUERY, KEY)]]


ON_A_GPU = """
import jax, jax.numpy as jnp, numpy as np
from transformer_jax.model.attention import fused_attention, scaled_dot_product_attention

random = np.random.default_rng(0)
query, into = random.standard_normal((2, 5, 34, 3, 64), np.float32).astype(jnp.bfloat16)
key, value = random.standard_normal((2, 5, 38, 3, 64), np.float32).astype(jnp.bfloat16)
mask = random.random((5, 34, 38)) < 0.6
mask[:, 4] = False

def value_and_gradients(function):
  def loss(qkv):
    result = jax.vmap(function)(*qkv, mask)
    return jnp.sum((into * result).astype(jnp.float32)), result
  (_, result), gradients = jax.jit(jax.value_and_grad(loss, has_aux=True))((query, key, value))
  return [np.asarray(x, np.float32) for x in (result, *gradients)]

for fused, plain in zip(value_and_gradients(fused_attention), value_and_gradients(scaled_dot_product_attention)):
  np.testing.assert_allclose(fused, plain, atol=0.03 * np.abs(plain).max())
  assert not fused[:, 4].any() or fused.shape[1] != 34
"""


@pytest.mark.skipif(not shutil.which("nvidia-smi"), reason="needs an NVIDIA GPU")
def test_fused_attention_on_a_gpu():
  """In a process of its own, as the tests have no devices but the CPU's."""
  subprocess.run([sys.executable, "-c", ON_A_GPU], check=True, env={**os.environ, "JAX_PLATFORMS": "cuda"})
