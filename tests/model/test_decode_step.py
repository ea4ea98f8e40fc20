"""The cached step against decoding of whole sequences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.example import CONFIG, SOURCE, options, perturbed
from transformer_jax.config import Config
from transformer_jax.model import masking
from transformer_jax.model.transformer import Transformer
from transformer_jax.training.step import init_params

BEAMS, LENGTH = 5, 11
VALID = np.arange(SOURCE) < SOURCE - 3


class Example:
  """A model, an encoded sentence, and its two ways to decode."""

  def __init__(self, **changes):
    self.model = Transformer(options(**changes))
    self.params = perturbed(init_params(Config(model=self.model.config)))
    source = np.random.default_rng(0).integers(CONFIG.vocab_size, size=SOURCE)
    mask = masking.padding_mask(VALID, VALID)
    self.memory = self.apply(source, np.arange(SOURCE), mask, method="encode")
    self.step = jax.jit(lambda *args: self.apply(*args, method="decode_step"))
    self.whole = jax.jit(jax.vmap(self._whole))

  def apply(self, *args, method):
    return self.model.apply({"params": self.params}, *args, method=method)

  def start(self):
    return self.apply(self.memory, VALID, LENGTH, BEAMS, method="start")

  def _whole(self, tokens):
    """Decodes `[length]` tokens at once -> `[length, model]`."""
    cross_mask = jnp.broadcast_to(VALID, (LENGTH, SOURCE))
    positions, mask = jnp.arange(LENGTH), masking.causal_mask(LENGTH)
    return self.apply(tokens, positions, self.memory, mask, cross_mask, method="decode")


@pytest.fixture(scope="module", params=[{}, {"pre_norm": True, "learned_positions": True, "attention_bias": True}])
def example(request):
  return Example(**request.param)


def test_beams_that_change_places_equal_the_whole_path_of_each(example):
  """Parents are random at every step: hypotheses are doubled, dropped and re-ordered."""
  generator = np.random.default_rng(1)
  cache, paths = example.start(), np.zeros((BEAMS, LENGTH), np.int64)
  for position in range(LENGTH):
    parents = generator.integers(BEAMS, size=BEAMS)
    tokens = generator.integers(CONFIG.vocab_size, size=BEAMS)
    paths = paths[parents]
    paths[:, position] = tokens
    hidden, cache = example.step(cache, jnp.int32(position), parents, tokens)
    np.testing.assert_allclose(hidden, example.whole(paths)[:, position], atol=1e-5)


def test_what_is_not_yet_written_is_not_read(example):
  clean = example.start()
  dirty = clean.replace(past=jax.tree.map(lambda x: x + 1e3, clean.past), ancestors=clean.ancestors + 3)
  tokens, parents = np.arange(BEAMS), np.array([0, 0, 3, 1, 2])
  for position in range(3):
    expected, clean = example.step(clean, jnp.int32(position), parents, tokens)
    hidden, dirty = example.step(dirty, jnp.int32(position), parents, tokens)
    np.testing.assert_array_equal(hidden, expected)


def test_cross_attention_keys_and_values_are_computed_once(example):
  """The beams share them, and a step hands them on as they are."""
  config, cache = example.model.config, example.start()
  assert [(k.shape, v.shape) for k, v in cache.memory] == [
    ((SOURCE, config.num_heads, config.d_k), (SOURCE, config.num_heads, config.d_v))
  ] * config.num_layers
  _, after = example.step(cache, jnp.int32(0), np.zeros(BEAMS, int), np.arange(BEAMS))
  jax.tree.map(np.testing.assert_array_equal, after.memory, cache.memory)
