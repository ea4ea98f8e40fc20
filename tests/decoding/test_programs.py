"""The search with a Transformer: the cache, the mask, the devices."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.decoding.conftest import VOCAB
from tests.model.example import random_params
from transformer_jax.config import Config, LengthPenalty
from transformer_jax.decoding import programs
from transformer_jax.decoding.beam_search import SearchOptions, beam_search
from transformer_jax.decoding.buckets import pad
from transformer_jax.decoding.choices import Choices
from transformer_jax.decoding.sampling import SamplingOptions
from transformer_jax.model import masking
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.special_tokens import BOS, EOS, PAD, UNK
from transformer_jax.model.transformer import Transformer
from transformer_jax.runtime import devices
from transformer_jax.tasks.translation import TASK

LENGTH = 11
OPTIONS = SearchOptions(beam_size=3, penalty=LengthPenalty.GNMT, length_penalty=0.6, n_best=3)
EXTRA_LENGTH = 5
search = functools.partial(programs.search, extra_length=EXTRA_LENGTH)


@pytest.fixture(scope="module")
def model():
  return Transformer(ModelConfig(vocab_size=VOCAB, num_layers=2, d_model=16, d_ff=29, num_heads=2))


@pytest.fixture(scope="module")
def params(model):
  return jax.device_get(random_params(Config(model=model.config), TASK))


@pytest.fixture(scope="module")
def source():
  """Eight sentences of 0 to 11 tokens."""
  generator = np.random.default_rng(0)
  return pad([[*generator.integers(4, 311, size=n - 1), EOS] for n in (11, 2, 7, 5, 3, 1, 9)], 8, LENGTH, PAD)


@pytest.fixture(scope="module", params=[2, pytest.param(8, marks=pytest.mark.long)])
def slots(request):
  return request.param


@pytest.fixture(scope="module")
def found(model, params, source, slots):
  return jax.device_get(
    jax.jit(lambda params, source: search(model, OPTIONS, params, source, slots=slots))(params, source)
  )


def uncached_search(model, params, source):
  """The search for one sentence, with the whole decoder run for every token."""
  variables, n = {"params": params}, len(source)
  ones = jnp.ones((n, n), bool)
  memory = model.apply(variables, source, jnp.arange(n), ones, method="encode")
  max_length, beams = n + EXTRA_LENGTH, OPTIONS.beam_size

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

  def step(inputs, positions, parents, tokens):
    [position] = positions
    inputs = jnp.take_along_axis(inputs, parents[:, :, None], axis=1).at[:, :, position].set(tokens)
    return jax.vmap(decode)(inputs[0])[None, :, position], inputs

  inputs = jnp.zeros((1, beams, max_length), jnp.int32)
  return beam_search(step, inputs, jnp.array([max_length]), max_length, OPTIONS)


@pytest.mark.parametrize("row", [pytest.param(0, marks=pytest.mark.long), 3])
def test_cached_and_padded_equals_uncached_and_alone(model, params, source, found, row):
  expected = jax.jit(lambda params: uncached_search(model, params, source[row][source[row] != PAD]))(params)
  np.testing.assert_array_equal(found.lengths[row], expected.lengths[0])
  np.testing.assert_array_equal(found.tokens[row, :, : expected.tokens.shape[2]], expected.tokens[0])
  np.testing.assert_allclose(found.log_probs[row], expected.log_probs[0], rtol=1e-5)


def test_limits_are_the_sentences_own(source, found):
  limits = (source != PAD).sum(axis=1) + EXTRA_LENGTH
  assert (found.lengths[:7] <= limits[:7, None]).all()
  assert (found.lengths[:7] > 0).all()
  assert (found.lengths[7] == 0).all()


def test_probability_of_the_found_is_what_the_search_says(model, params, source, found):
  pairs = (source[:7], found.tokens[:7, 0])
  log_probs = jax.jit(lambda params, pairs: programs.score(model, params, pairs))(params, pairs)
  np.testing.assert_allclose(log_probs, found.log_probs[:7, 0], rtol=1e-5)


@pytest.mark.long
def test_eight_devices_equal_one_to_the_last_bit(model, params, source, slots, found):
  """Each has the sentences in another order; the empty one stays behind."""
  eight = devices.over_devices(lambda params, source: search(model, OPTIONS, params, source, slots=slots), out_axes=0)
  orders = [[*np.roll(np.arange(7), i), 7] for i in range(8)]
  sources = np.concatenate([source[order] for order in orders])
  result = jax.device_get(eight(devices.replicate(params), devices.shard(sources)))
  for i, order in enumerate(orders):
    for a, b in zip(result, found, strict=True):
      np.testing.assert_array_equal(a[i], b[order])


@pytest.mark.long
def test_forced_and_drawn_tokens_on_eight_devices_equal_those_on_one_to_the_last_bit(model, params, source):
  options = dataclasses.replace(OPTIONS, beam_size=1, n_best=1, sampling=SamplingOptions(suppressed=(PAD, UNK, BOS)))
  prefixes = pad([[], [7], [31, 32, 33], [], [5, 6]], 8, LENGTH + EXTRA_LENGTH, PAD)
  numbers = np.array([[3, row] for row in range(8)], np.uint32)

  def run(params, batch):
    return search(model, options, params, *batch, slots=2)

  one = jax.device_get(jax.jit(run)(params, (source, Choices(prefixes, numbers))))
  assert one.tokens[2, 0, :3].tolist() == [31, 32, 33]
  orders = [[*np.roll(np.arange(7), i), 7] for i in range(8)]
  batch = jax.tree.map(lambda x: np.concatenate([x[order] for order in orders]), (source, Choices(prefixes, numbers)))
  eight = devices.over_devices(run, out_axes=0)
  result = jax.device_get(eight(devices.replicate(params), devices.shard(batch)))
  for i, order in enumerate(orders):
    for a, b in zip(result, one, strict=True):
      np.testing.assert_array_equal(a[i], b[order])
