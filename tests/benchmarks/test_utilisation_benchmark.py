"""The operations that benchmarks/utilisation.py counts are those of the model, for real tokens alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_jax.analysis import operations
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.transformer import Transformer

MODEL = ModelConfig(vocab_size=31, num_layers=2, d_model=22, d_ff=13, num_heads=3, d_k=5, d_v=7)


@pytest.fixture
def utilisation(program):
  return program("utilisation")


def test_one_pair_needs_what_the_traced_model_computes_less_what_the_causal_mask_hides(utilisation):
  source, target = 11, 17
  ones = [jnp.ones(shape, bool) for shape in ((source, source), (target, target), (target, source))]
  tokens = [jnp.zeros(source, jnp.int32), jnp.zeros(target, jnp.int32), jnp.arange(source), jnp.arange(target)]

  def logits(model):
    return model.logits(model(*tokens, *ones))

  model = Transformer(MODEL)
  params = jax.eval_shape(lambda: model.init(jax.random.key(0), method=logits))
  computed = operations.matmuls(jax.make_jaxpr(lambda params: model.apply(params, method=logits))(params).jaxpr)
  hidden = MODEL.num_layers * 2 * MODEL.num_heads * (5 + 7) * (target * (target - 1) // 2)
  assert utilisation.forward_flops(MODEL, np.array([source]), np.array([target])) == computed - hidden


def test_several_pairs_need_the_sum(utilisation):
  pairs = np.array([[2, 3], [5, 7], [11, 1]])
  each = [utilisation.forward_flops(MODEL, *pairs[i : i + 1].T) for i in range(3)]
  assert utilisation.forward_flops(MODEL, *pairs.T) == sum(each)


def test_lengths_are_those_of_the_packed_pairs(utilisation):
  rows = np.zeros((2, 4, 11), np.uint16)
  rows[0, 1, :7], rows[0, 3, :8] = [1, 1, 2, 2, 2, 3, 3], [1, 2, 2, 2, 2, 3, 3, 3]
  rows[1, 1, :5], rows[1, 3, :3] = 1, 1
  assert sorted(map(tuple, utilisation.lengths(rows).tolist())) == [(2, 1), (2, 3), (3, 4), (5, 3)]
