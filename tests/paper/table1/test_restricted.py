import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.example import CONFIG, normal, perturbed
from transformer_jax.model.attention import MultiHeadAttention, scaled_dot_product_attention
from transformer_jax.model.masking import window_mask
from transformer_jax.paper.table1.restricted import RestrictedAttention, restricted_attention

HEADS, D_K, D_V = 3, 5, 7


@pytest.mark.parametrize(("length", "radius"), [(17, 1), (17, 3), (18, 3), (17, 16), (5, 23)])
def test_equals_attention_with_a_window_mask(length, radius):
  """With gradients; lengths that are, and are not, whole blocks."""
  qkv = normal(0, length, HEADS, D_K), normal(1, length, HEADS, D_K), normal(2, length, HEADS, D_V)
  weights = normal(3, length, HEADS, D_V)

  def masked(*qkv):
    return scaled_dot_product_attention(*qkv, window_mask(length, length, radius))

  def results(attention):
    def loss(*qkv):
      heads = attention(*qkv)
      return jnp.sum(weights * heads), heads

    return jax.jit(jax.grad(loss, argnums=(0, 1, 2), has_aux=True))(*qkv)

  restricted = results(lambda *qkv: restricted_attention(*qkv, radius))
  jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), restricted, results(masked))


@pytest.mark.long
def test_the_module_has_the_parameters_of_multi_head_attention():
  length, radius = 17, 3
  x, mask = normal(0, length, CONFIG.d_model), window_mask(length, length, radius)
  plain, restricted = MultiHeadAttention(CONFIG), RestrictedAttention(CONFIG, radius)
  params = perturbed(jax.jit(lambda: plain.init(jax.random.key(0), x, x, mask, deterministic=True))()["params"])
  own = jax.eval_shape(restricted.init, jax.random.key(0), x)["params"]["attention"]
  assert jax.tree.map(jnp.shape, own) == jax.tree.map(jnp.shape, params)
  expected = plain.apply({"params": params}, x, x, mask, deterministic=True)
  np.testing.assert_allclose(restricted.apply({"params": {"attention": params}}, x), expected, atol=1e-5)
