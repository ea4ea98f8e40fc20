"""Sampling: the candidates against brute force, the frequencies, and the same text with the cache and without."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.language import example
from tests.model.example import random_params
from transformer_jax.config import Config, DataConfig, TrainConfig
from transformer_jax.decoding.sampling import SamplingOptions, candidates, sample
from transformer_jax.language.gpt import GPT
from transformer_jax.model.special_tokens import BOS, EOS, PAD, UNK
from transformer_jax.tasks.causal import TASK

VOCAB = 31


SUPPRESSED = (PAD, UNK, BOS)


def brute_force(logits: np.ndarray, temperature: float, top_k: int, top_p: float) -> dict[int, float]:
  """The tokens that may be chosen, with their probabilities."""
  allowed = [token for token in range(len(logits)) if token not in (PAD, UNK, BOS)]
  ranked = sorted(allowed, key=lambda token: (-logits[token], token))
  ranked = ranked[: top_k or None] if temperature else ranked[:1]
  weights = {token: np.exp((logits[token] - logits[ranked[0]]) / (temperature or 1.0)) for token in ranked}
  total = sum(weights.values())
  kept, reached = {}, 0.0
  for token in ranked:
    if kept and reached >= top_p:
      break
    kept[token] = weights[token]
    reached += weights[token] / total
  return {token: weight / sum(kept.values()) for token, weight in kept.items()}


@pytest.mark.parametrize(
  ("temperature", "top_k", "top_p"),
  [
    (1.0, 0, 1.0),
    (0.7, 5, 1.0),
    (1.3, 0, 0.8),
    (0.5, 7, 0.9),
    (0.0, 0, 1.0),
    (2.0, 100, 1e-9),
    (1.0, 1, 0.5),
    (1.0, 2**40, 1.0),
    (1e30, 0, 1.0),
  ],
)
def test_candidates(temperature, top_k, top_p):
  options = SamplingOptions(temperature, top_k, top_p, SUPPRESSED)
  function = jax.jit(lambda logits: jax.nn.softmax(candidates(logits, options)))
  for seed in range(5):
    logits = np.random.default_rng(seed).normal(0, 2, VOCAB).astype(np.float32)
    logits[[5, 9, 20]] = logits[7]  # equal ones
    found = np.asarray(function(logits))
    expected = brute_force(logits.astype(float), temperature, top_k, top_p)
    assert set(np.flatnonzero(found)) == set(expected)
    for token, probability in expected.items():
      assert found[token] == pytest.approx(probability, rel=1e-4)


def test_all_tokens_are_all_and_a_low_temperature_is_the_most_probable():
  logits = np.random.default_rng(0).normal(-50, 6, 9973).astype(np.float32)
  compiled = jax.jit(candidates, static_argnums=1)
  suppressed = np.asarray(compiled(logits, SamplingOptions(suppressed=(7, 2))))
  assert np.flatnonzero(np.isinf(suppressed)).tolist() == [2, 7]
  assert np.all(np.isfinite(compiled(logits, SamplingOptions())))
  coldest = np.asarray(compiled(logits, SamplingOptions(temperature=1e-38)))
  logits[[PAD, UNK, BOS]] = -np.inf
  assert np.argmax(coldest) == np.argmax(logits) and np.isfinite(coldest[np.argmax(logits)])


def test_of_equal_logits_the_first_are_kept():
  logits = np.random.default_rng(1).integers(0, 3, 997).astype(np.float32)
  kept = np.isfinite(np.asarray(candidates(jnp.asarray(logits), SamplingOptions(top_p=0.3))))
  assert 2 < np.sum(kept) < np.sum(logits == 2) and np.all(logits[kept] == 2)
  assert np.flatnonzero(kept).tolist() == np.flatnonzero(logits == 2)[: np.sum(kept)].tolist()


@pytest.mark.parametrize(("top_p", "count"), [(0.25, 1), (0.5, 2), (0.75, 3), (0.76, 4)])
def test_the_fewest_tokens_that_reach_a_total_probability_are_kept(top_p, count):
  """Of four that are equally likely; the sums are exact."""
  found = candidates(jnp.zeros(4), SamplingOptions(top_p=top_p))
  assert np.flatnonzero(np.isfinite(found)).tolist() == [*range(count)]


@pytest.fixture(scope="module")
def model():
  config = Config(data=DataConfig(row_length=13), model=example.GPT, train=TrainConfig(batch_tokens=13))
  params = jax.tree.map(lambda x: 3 * x, random_params(config, TASK))  # so that some tokens are likely
  return GPT(example.GPT), params


LENGTH = 17
PROMPT = jnp.array([5, 9, 30] + [0] * (LENGTH - 3), jnp.int32)


def texts(model, options, keys, whole=LENGTH):
  module, params = model
  function = jax.jit(jax.vmap(lambda key: sample(module, options, LENGTH, params, PROMPT, (3, whole), key)))
  tokens, counts, finite = function(keys)
  assert finite.all()
  return np.asarray(tokens), np.asarray(counts)


def test_with_the_cache_as_without(model):
  """The most probable token each time, by the whole text up to there."""
  module, params = model
  (tokens,), (count,) = texts(
    model, SamplingOptions(temperature=0.0, suppressed=SUPPRESSED), jax.random.split(jax.random.key(0), 1)
  )
  assert tokens[:3].tolist() == np.asarray(PROMPT[:3]).tolist()

  @jax.jit
  def next_logits(text, place):
    positions = jnp.arange(LENGTH)
    hidden = module.apply({"params": params}, text, positions, jnp.tri(LENGTH, dtype=bool))
    return module.apply({"params": params}, hidden[place], method="logits")

  shifted = np.concatenate([[BOS], tokens[:-1]])
  for place in range(3, count):
    logits = np.array(next_logits(shifted, place))
    logits[[PAD, UNK, BOS]] = -np.inf
    assert tokens[place] == np.argmax(logits)


def test_a_text_ends_with_eos_or_where_it_must(model):
  tokens, counts = texts(
    model, SamplingOptions(temperature=3.0, suppressed=SUPPRESSED), jax.random.split(jax.random.key(1), 64), whole=11
  )
  assert np.all(counts <= 11) and np.any(counts < 11) and np.any(counts == 11)
  for text, count in zip(tokens, counts, strict=True):
    written = text[3:count].tolist()
    assert not {PAD, UNK, BOS} & set(written) and EOS not in written[:-1]
    assert count == 11 or written[-1] == EOS
    assert np.all(text[count:] == PAD)


@pytest.mark.long
def test_first_tokens_are_as_frequent_as_they_are_probable(model):
  module, params = model
  options = SamplingOptions(temperature=0.9, top_k=4, suppressed=SUPPRESSED)
  shifted = np.concatenate([[BOS], np.asarray(PROMPT[:-1])])
  hidden = module.apply({"params": params}, shifted, jnp.arange(LENGTH), jnp.tri(LENGTH, dtype=bool))
  logits = np.asarray(module.apply({"params": params}, hidden[3], method="logits"))
  expected = brute_force(logits.astype(float), 0.9, 4, 1.0)
  tokens, _ = texts(model, options, jax.random.split(jax.random.key(2), 2000), whole=4)
  found = collections.Counter(tokens[:, 3].tolist())
  assert set(found) <= set(expected)
  for token, probability in expected.items():
    deviation = (probability * (1 - probability) / 2000) ** 0.5
    assert found[token] / 2000 == pytest.approx(probability, abs=5 * deviation)


@pytest.mark.long
def test_each_place_has_random_numbers_of_its_own(model):
  """Where all tokens are equally likely, one of 27 that do not end the text is followed by itself once in 28 times."""
  module, params = model
  flat = jax.tree.map(jnp.zeros_like, params)
  tokens, counts = texts(
    (module, flat), SamplingOptions(suppressed=SUPPRESSED), jax.random.split(jax.random.key(3), 4000), whole=5
  )
  both = tokens[counts == 5][:, 3:5]
  assert len(both) / 4000 == pytest.approx(27 / 28, abs=0.02)
  deviation = (27 / 28**2 / len(both)) ** 0.5
  assert np.mean(both[:, 0] == both[:, 1]) == pytest.approx(1 / 28, abs=5 * deviation)
