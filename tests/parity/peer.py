"""What the comparisons with other libraries share."""

from typing import Any

import jax
import numpy as np
import pytest

# Where ReLU's argument is nearly 0, two libraries may be on two sides of its kink and disagree about a gradient. With
# this seed the nearest is 1.4e-5 away in `test_transformer`, and rounding moves the arguments by no more than 1e-6.
SEED = 5


def required(name: str) -> Any:
  """The module of that name; where it is missing, the tests of the importing file are skipped."""
  return pytest.importorskip(name, reason=f"{name} is missing; to compare with it: pip install -e '.[parity]'")


def assert_close(found: Any, expected: Any, what: str = "") -> None:
  """|found - expected| <= 1e-5 (|expected| + max |expected|), element by element.

  The maximum is that of the whole array: an element which is a difference of
  large numbers is no more exact than they are.
  """
  expected = np.asarray(expected)
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.max(np.abs(expected)), err_msg=what)


def with_noise(params: Any) -> Any:
  """The parameters, but with noise on the biases and scales: they are 0 and 1, which would hide mistakes.

  The matrices stay as they are: with noise on them too, float32 gives some gradients of
  queries and keys in post-norm stacks only to 1e-5, here and in torch.
  """
  generator = np.random.default_rng(SEED)

  def noisy(path: Any, array: jax.Array) -> jax.Array:
    noise = 0.1 * generator.standard_normal(array.shape).astype(np.float32)
    return array + noise if path[-1].key in ("bias", "scale", "output_bias") else array

  return jax.tree_util.tree_map_with_path(noisy, params)
