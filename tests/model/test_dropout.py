import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_jax.model.dropout import Dropout, dropout

SHAPE = (101, 211)  # an odd number of elements, 21,311: two share a random word


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
def test_zeros_have_the_rate_and_the_others_its_scale(rate):
  x = jnp.ones(SHAPE)
  result = np.asarray(dropout(jax.random.key(0), x, rate))
  zeros = np.mean(result == 0)
  assert abs(zeros - rate) < 4.5 * math.sqrt(rate * (1 - rate) / x.size) + 2**-17
  scale = 2**16 / (2**16 - round(rate * 2**16))  # of the rate in 65536ths, so that the mean is exactly x
  np.testing.assert_allclose(result[result != 0], scale, rtol=1e-6)
  assert abs(scale - 1 / (1 - rate)) < 2**-15 / (1 - rate) ** 2
  assert abs(np.mean(result) - 1) < 4.5 * math.sqrt(rate / (1 - rate) / x.size)


def test_the_scale_is_not_rounded_to_bfloat16():
  """bfloat16 has 142/128 = 1.1094 in place of 65536/58982 = 1.1111, but a rounded result is right in the mean."""
  x = jax.random.uniform(jax.random.key(1), SHAPE, minval=1, maxval=2).astype(jnp.bfloat16)
  result = np.asarray(dropout(jax.random.key(0), x, 0.1).astype(jnp.float32))
  kept = result != 0
  np.testing.assert_allclose(result[kept].sum() / np.asarray(x, np.float32)[kept].sum(), 2**16 / 58982, rtol=2e-4)


def test_elements_are_dropped_independently():
  kept = np.asarray(dropout(jax.random.key(0), jnp.ones(SHAPE), 0.5)) > 0
  kept = kept.reshape(-1)
  for distance in (1, 2, 211, 10_656):  # 211 is a row, and elements 10,656 apart share a word
    agreement = np.mean(kept[distance:] == kept[:-distance])
    assert abs(agreement - 0.5) < 4.5 * 0.5 / math.sqrt(kept.size)


def test_keys_differ_and_a_key_repeats():
  x = jnp.ones(SHAPE)
  first, second = jax.random.split(jax.random.key(0))
  np.testing.assert_array_equal(dropout(first, x, 0.5), dropout(first, x, 0.5))
  agreement = np.mean(dropout(first, x, 0.5) == dropout(second, x, 0.5))
  assert abs(agreement - 0.5) < 4.5 * 0.5 / math.sqrt(x.size)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 0)])
def test_any_shape(shape):
  assert dropout(jax.random.key(0), jnp.ones(shape), 0.5).shape == shape


def test_rates_near_0_and_1():
  x = jnp.ones(SHAPE)
  np.testing.assert_array_equal(dropout(jax.random.key(0), x, 0.0), x)
  assert np.all(np.isfinite(dropout(jax.random.key(0), x, 1 - 1e-9)))


def test_type_is_kept():
  assert dropout(jax.random.key(0), jnp.ones(3, jnp.bfloat16), 0.5).dtype == jnp.bfloat16


def test_module_is_the_identity_without_dropout():
  x = jnp.ones(SHAPE)
  assert Dropout(0.5).apply({}, x, deterministic=True) is x
  assert Dropout(0.0).apply({}, x, deterministic=False) is x  # and needs no key
  result = Dropout(0.5).apply({}, x, deterministic=False, rngs={"dropout": jax.random.key(0)})
  assert 0.4 < np.mean(result == 0) < 0.6


def test_float64_keeps_its_digits():
  with jax.enable_x64(True):
    x = jnp.full(97, 1 / 3, jnp.float64)
    result = np.asarray(dropout(jax.random.key(0), x, 0.25))
  assert result.dtype == np.float64
  np.testing.assert_allclose(result[result != 0], 4 / 9, rtol=1e-15)
