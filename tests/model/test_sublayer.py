import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.example import float64, module_params, normal, options
from transformer_jax.model.config import Dtype
from transformer_jax.model.sublayer import Sublayer, layer_norm
from transformer_jax.paper import formulas

LENGTH, D_MODEL = 13, 22


@pytest.mark.parametrize("pre_norm", [False, True])
def test_residual_and_layer_norm(pre_norm):
  module = Sublayer(options(pre_norm=pre_norm))
  x, matrix = 3 + 2 * normal(0, LENGTH, D_MODEL), normal(1, D_MODEL, D_MODEL)

  def f(x):
    return x @ matrix

  params = module_params(module, x, f, deterministic=True)
  result = jax.jit(lambda: module.apply({"params": params}, x, f, deterministic=True))()
  expected = formulas.sublayer(float64(params), x.astype(np.float64), f, pre_norm=pre_norm)
  np.testing.assert_allclose(result, expected, atol=2e-5)


@jax.jit
def value_and_gradient(params, x, factors):
  found, gradient_of = jax.vjp(lambda x: layer_norm(options(layer_norm_epsilon=1e-6)).apply({"params": params}, x), x)
  return found, *gradient_of(factors)


@pytest.mark.parametrize("mean", [0, 1, 10, 100, 1000, 3000, -3000])
@pytest.mark.parametrize("width", [23, 512])
def test_layer_norm_and_its_gradients_are_exact_for_a_mean_of_many_spreads(width, mean):
  """Against the formulas in float64, of the same float32 input."""
  generator = np.random.default_rng(abs(mean))
  x = (mean + generator.standard_normal((LENGTH, width))).astype(np.float32)
  factors = generator.standard_normal((LENGTH, width)).astype(np.float32)
  scale, bias = generator.standard_normal((2, width)).astype(np.float32)
  found, gradient = value_and_gradient({"scale": scale, "bias": bias}, x, factors)

  centred = x.astype(np.float64) - np.mean(x, axis=-1, keepdims=True, dtype=np.float64)
  deviation = np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + 1e-6)
  normal_x, g = centred / deviation, factors.astype(np.float64) * scale
  np.testing.assert_allclose(found, normal_x * scale + bias, atol=3e-6)
  # Behind the mean and the deviation, a gradient has no part along 1 and along the output.
  along = np.mean(g, axis=-1, keepdims=True) + normal_x * np.mean(g * normal_x, axis=-1, keepdims=True)
  np.testing.assert_allclose(gradient, (g - along) / deviation, atol=1e-5)


def test_constant_input_is_not_divided_by_zero():
  module = Sublayer(options())
  x = np.full((LENGTH, D_MODEL), 5, np.float32)
  result, _ = module.init_with_output(jax.random.key(0), x, jnp.zeros_like, deterministic=True)
  assert not np.any(result)


def test_dropout_is_on_the_output_of_f_and_not_on_the_residual():
  module = Sublayer(options(dropout=0.5, pre_norm=True))
  x, y = normal(0, LENGTH, D_MODEL), 1 + np.abs(normal(1, LENGTH, D_MODEL))
  params = module.init(jax.random.key(0), x, lambda x: y, deterministic=True)
  result = module.apply(params, x, lambda x: y, deterministic=False, rngs={"dropout": jax.random.key(1)})
  added = np.asarray(result - x)
  kept = np.abs(added) > 0.5
  assert 0.4 < kept.mean() < 0.6
  np.testing.assert_allclose(added, np.where(kept, 2 * y, 0), atol=1e-6)


def test_layer_norm_in_bfloat16_averages_in_float32():
  module = Sublayer(options(dtype=Dtype.BFLOAT16))
  # Of 8 bits, a mean of values around 100 would have none left for their differences of 1.
  x = jnp.asarray(100 + np.arange(D_MODEL) % 2, jnp.bfloat16)
  result, params = module.init_with_output(jax.random.key(0), x, jnp.zeros_like, deterministic=True)
  assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float32")}
  assert result.dtype == jnp.bfloat16
  np.testing.assert_allclose(result.astype(jnp.float32), np.where(np.arange(D_MODEL) % 2, 1, -1), atol=2**-8)
