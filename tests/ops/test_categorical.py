"""Drawn tokens: frequencies against probabilities, and each against the sums that define it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_jax.ops.categorical import _first_above, categorical


@functools.cache
def _draw_many(count):
  keys = jax.vmap(functools.partial(jax.random.fold_in, jax.random.key(5)))(jnp.arange(count))
  uniform = jax.vmap(jax.random.uniform)(keys)
  return jax.jit(lambda logits: (jax.vmap(categorical, (None, 0))(logits, uniform), uniform))


@pytest.mark.parametrize("vocab", [31, 389])
def test_a_drawn_token_is_where_the_random_number_falls_into_the_sums_of_probabilities(vocab):
  logits = np.random.default_rng(vocab).normal(0, 3, vocab).astype(np.float32)
  logits[[0, 7, 20, -1]] = -np.inf
  logits[130:280] = -np.inf  # a block that nothing may be drawn from, if there are as many
  drawn, uniform = jax.device_get(_draw_many(2003)(logits))
  weights = np.exp(logits.astype(float) - logits.max())
  ends = np.cumsum(weights) / weights.sum()
  assert np.all(np.isfinite(logits[drawn]))
  expected = np.searchsorted(ends, uniform, side="right")
  apart = np.min(np.abs(ends[None] - uniform[:, None]), axis=1) > 1e-6  # not where rounding decides
  assert np.mean(apart) > 0.9
  np.testing.assert_array_equal(drawn[apart], expected[apart])


def test_one_token_alone_is_always_drawn():
  logits = np.full(389, -np.inf, np.float32)
  logits[388] = -80.0
  assert set(_draw_many(2003)(logits)[0].tolist()) == {388}


def test_tokens_are_as_frequent_as_they_are_probable():
  logits = np.random.default_rng(0).standard_normal(31).astype(np.float32)
  logits[[2, 11]] = -np.inf
  uniform = np.arange(20_000, dtype=np.float32) / 20_000
  found = jax.jit(jax.vmap(categorical, in_axes=(None, 0)))(jnp.asarray(logits), uniform)
  expected = np.exp(logits)
  np.testing.assert_allclose(np.bincount(found, minlength=31) / 20_000, expected / expected.sum(), atol=1e-4)


def test_rounding_never_leaves_what_may_be_drawn():
  """It may put the point before the first sum or behind the last one."""
  sums, allowed = jnp.array([0.0, 0.25, 0.5, 0.5]), jnp.array([False, True, True, False])
  found = [int(_first_above(sums, point, allowed)) for point in (-1e-9, 0.0, 0.25, 0.5, 1.0)]
  assert found == [1, 1, 2, 2, 2]
