import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.example import CONFIG, float64, module_params, normal, options
from transformer_jax.model.config import Activation, Dtype
from transformer_jax.model.feed_forward import ACTIVATIONS, FeedForward
from transformer_jax.paper import formulas

LENGTH = 13


def test_equation_2():
  module = FeedForward(CONFIG)
  x = normal(0, LENGTH, CONFIG.d_model)
  params = module_params(module, x)
  result = jax.jit(module.apply)({"params": params}, x)
  np.testing.assert_allclose(result, formulas.feed_forward(float64(params), x), atol=3e-6)


def test_it_is_two_convolutions_of_width_1():
  """§3.3, with NumPy's convolution of each feature."""
  module = FeedForward(CONFIG)
  x = normal(0, LENGTH, CONFIG.d_model)
  params = float64(module_params(module, x))

  def convolution(part, x):
    kernel, bias = params[part]["kernel"], params[part]["bias"]
    features = range(kernel.shape[1])
    of_each = [sum(np.convolve(x[:, i], kernel[i : i + 1, o]) for i in range(kernel.shape[0])) for o in features]
    return np.stack(of_each, axis=1) + bias

  expected = convolution("outer", np.maximum(0, convolution("inner", x)))
  np.testing.assert_allclose(jax.jit(module.apply)({"params": params}, x), expected, atol=3e-6)


@pytest.mark.parametrize(
  ("activation", "expected"),
  [
    (Activation.RELU, lambda x: max(0.0, x)),
    (Activation.GELU, lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2)))),
    (Activation.GELU_TANH, lambda x: x * 0.5 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
    (Activation.SWISH, lambda x: x / (1 + math.exp(-x))),
  ],
)
def test_activations(activation, expected):
  x = np.linspace(-4, 4, 41, dtype=np.float32)
  np.testing.assert_allclose(ACTIVATIONS[activation](x), list(map(expected, x.tolist())), atol=2e-6)


def test_bfloat16_is_close_and_keeps_float32_parameters():
  x = normal(0, LENGTH, CONFIG.d_model)
  module = FeedForward(options(dtype=Dtype.BFLOAT16))
  params = module_params(module, x)
  assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float32")}
  result = jax.jit(module.apply)({"params": params}, x)
  assert result.dtype == jnp.bfloat16
  expected = formulas.feed_forward(float64(params), x)
  # A few roundings of 2^-9 relative to values of the size of the largest.
  np.testing.assert_allclose(result.astype(jnp.float32), expected, atol=4 * 2**-9 * np.max(np.abs(expected)))
