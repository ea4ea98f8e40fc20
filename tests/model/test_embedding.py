import math

import jax
import jax.numpy as jnp
import numpy as np

from tests.model.example import CONFIG, normal, options
from transformer_jax.model.config import Dtype
from transformer_jax.model.embedding import Embedding, embed, output_logits

TOKENS = np.array([3, 0, 30, 3, 7])


def test_a_token_is_its_row_times_the_root_of_d_model():
  table = normal(0, CONFIG.vocab_size, CONFIG.d_model)
  expected = np.stack([table[token].astype(np.float64) * math.sqrt(CONFIG.d_model) for token in TOKENS])
  np.testing.assert_allclose(embed(jnp.asarray(table), TOKENS), expected, rtol=1e-6)


def test_logits_are_products_with_every_row():
  table, hidden = normal(0, CONFIG.vocab_size, CONFIG.d_model), normal(1, 5, CONFIG.d_model)
  expected = [[np.dot(h, row) for row in table.astype(np.float64)] for h in hidden.astype(np.float64)]
  np.testing.assert_allclose(output_logits(table, hidden), expected, atol=1e-5)


def test_one_table_serves_both():
  module = Embedding(CONFIG)
  params = jax.jit(module.init)(jax.random.key(0), TOKENS)
  (table,) = jax.tree.leaves(params)
  assert table.shape == (CONFIG.vocab_size, CONFIG.d_model)
  np.testing.assert_array_equal(module.apply(params, TOKENS), embed(table, TOKENS))


def test_embeddings_start_with_unit_variance():
  config = options(vocab_size=1009, d_model=62)
  module = Embedding(config)
  vectors, _ = jax.jit(module.init_with_output)(jax.random.key(0), np.arange(1009))
  # 62,558 values: the standard error of the mean is 0.004 and that of the deviation 0.003.
  assert abs(np.mean(vectors)) < 0.02 and abs(np.std(vectors) - 1) < 0.015


def test_logits_are_float32_in_bfloat16():
  params = jax.jit(Embedding(options(dtype=Dtype.BFLOAT16)).init)(jax.random.key(0), TOKENS)
  hidden = jnp.asarray(normal(1, 5, CONFIG.d_model), jnp.bfloat16)
  (table,) = jax.tree.leaves(params)
  logits = output_logits(table, hidden, "bfloat16")
  assert table.dtype == logits.dtype == jnp.float32
  # Both factors are rounded to 8 bits, their products are added up in float32.
  rounded = np.asarray(table.astype(jnp.bfloat16), np.float64)
  np.testing.assert_allclose(logits, np.asarray(hidden, np.float64) @ rounded.T, atol=1e-6)
