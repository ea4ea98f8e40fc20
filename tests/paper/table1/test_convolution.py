import jax
import numpy as np
import pytest

from tests.model.example import float64, normal, perturbed
from transformer_jax.paper.table1.convolution import SeparableConvolution, convolution, dilated_convolution

LENGTH, D = 13, 5


def shifted(x, distance):
  """x_(i + distance), with zeros beyond the ends."""
  return np.array([x[i + distance] if 0 <= i + distance < len(x) else 0 * x[0] for i in range(len(x))])


@pytest.mark.parametrize("width", [3, 7])
def test_each_output_is_of_the_inputs_about_it(width):
  assert_sum_of_products(convolution(D, width), range(-(width // 2), width // 2 + 1))


def test_dilated_outputs_are_of_past_inputs():
  assert_sum_of_products(dilated_convolution(D, 3, 4), (-8, -4, 0))


def assert_sum_of_products(module, distances):
  """Each output is a sum of a product for each of the inputs at these distances."""
  x = normal(0, LENGTH, D)
  params = perturbed(module.init(jax.random.key(0), x)["params"])
  exact = float64(params)
  expected = exact["bias"] + sum(shifted(x, far) @ exact["kernel"][j] for j, far in enumerate(distances))
  np.testing.assert_allclose(module.apply({"params": params}, x), expected, atol=1e-5)


def test_separable():
  module, x = SeparableConvolution(D, 7), normal(0, LENGTH, D)
  params = perturbed(module.init(jax.random.key(0), x)["params"])
  depthwise, dense = (float64(params)[name] for name in ("Conv_0", "Dense_0"))
  assert depthwise["kernel"].shape == (7, 1, D)
  hidden = sum(shifted(x, j - 3) * depthwise["kernel"][j, 0] for j in range(7))
  expected = hidden @ dense["kernel"] + dense["bias"]
  np.testing.assert_allclose(module.apply({"params": params}, x), expected, atol=1e-5)
