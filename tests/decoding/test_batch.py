"""The search with a Transformer: the cache, the mask, the devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_jax import parallel
from transformer_jax.config import LengthPenalty
from transformer_jax.data.tokenizer import BOS, EOS, PAD
from transformer_jax.decoding import batch
from transformer_jax.decoding.batch import SearchOptions
from transformer_jax.decoding.beam_search import beam_search
from transformer_jax.decoding.buckets import pad
from transformer_jax.model import masking
from transformer_jax.model.transformer import Transformer

LENGTH = 11
OPTIONS = SearchOptions(beam_size=3, length_penalty=LengthPenalty.GNMT, alpha=0.6, n_best=3, extra_length=5)


@pytest.fixture(scope="module")
def model(translator):
  return Transformer(translator._config.model)


@pytest.fixture(scope="module")
def params(translator):
  return jax.device_get(translator.params)


@pytest.fixture(scope="module")
def source():
  """Eight sentences of 0 to 11 tokens."""
  generator = np.random.default_rng(0)
  return pad([[*generator.integers(4, 311, size=n - 1), EOS] for n in (11, 2, 7, 5, 3, 1, 9)], 8, LENGTH, PAD)


@pytest.fixture(scope="module")
def found(model, params, source):
  return jax.device_get(jax.jit(lambda params, source: batch.search(model, OPTIONS, params, source))(params, source))


def uncached_search(model, params, source):
  """The search for one sentence, with the whole decoder run for every token."""
  variables, n = {"params": params}, len(source)
  ones = jnp.ones((n, n), bool)
  memory = model.apply(variables, source, jnp.arange(n), ones, method="encode")
  max_length, beams = n + OPTIONS.extra_length, OPTIONS.beam_size

  def decode(target):
    hidden = model.apply(
      variables,
      target,
      jnp.arange(max_length),
      memory,
      masking.causal_mask(max_length),
      jnp.ones((max_length, n), bool),
      method="decode",
    )
    return jax.nn.log_softmax(model.apply(variables, hidden, method="logits"))

  def step(inputs, position, parents, tokens):
    inputs = jnp.take_along_axis(inputs, parents[:, :, None], axis=1).at[:, :, position].set(tokens)
    return jax.vmap(decode)(inputs[0])[None, :, position], inputs

  return beam_search(
    step,
    jnp.zeros((1, beams, max_length), jnp.int32),
    jnp.array([max_length]),
    beam_size=beams,
    max_length=max_length,
    length_penalty=OPTIONS.length_penalty,
    alpha=OPTIONS.alpha,
    bos=BOS,
    eos=EOS,
    pad=PAD,
    n_best=OPTIONS.n_best,
  )


@pytest.mark.parametrize("row", [0, 3])
def test_cached_and_padded_equals_uncached_and_alone(model, params, source, found, row):
  expected = jax.jit(lambda params: uncached_search(model, params, source[row][source[row] != PAD]))(params)
  np.testing.assert_array_equal(found.lengths[row], expected.lengths[0])
  np.testing.assert_array_equal(found.tokens[row, :, : expected.tokens.shape[2]], expected.tokens[0])
  np.testing.assert_allclose(found.log_probs[row], expected.log_probs[0], rtol=1e-5)


def test_limits_are_the_sentences_own(source, found):
  limits = (source != PAD).sum(axis=1) + OPTIONS.extra_length
  assert (found.lengths[:7] <= limits[:7, None]).all()
  assert (found.lengths[:7] > 0).all()
  assert (found.lengths[7] == 0).all()


def test_probability_of_the_found_is_what_the_search_says(model, params, source, found):
  pairs = (source[:7], found.tokens[:7, 0])
  log_probs = jax.jit(lambda params, pairs: batch.score(model, params, pairs))(params, pairs)
  np.testing.assert_allclose(log_probs, found.log_probs[:7, 0], rtol=1e-5)


def test_eight_devices_equal_one_to_the_last_bit(model, params, source, found):
  eight = parallel.over_devices(lambda params, source: batch.search(model, OPTIONS, params, source), out_axes=0)
  sources = np.stack([np.roll(source, i, axis=0) for i in range(8)])
  result = jax.device_get(eight(parallel.replicate(params), parallel.shard(sources.reshape(64, LENGTH))))
  for i in range(8):
    for a, b in zip(result, found, strict=True):
      np.testing.assert_array_equal(a[i], np.roll(b, i, axis=0))
