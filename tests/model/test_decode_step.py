"""The cached step against decoding of whole sequences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.example import CONFIG, SOURCE, options, random_params
from transformer_jax.config import Config
from transformer_jax.model import cache as caching
from transformer_jax.model import masking
from transformer_jax.model.config import Dtype
from transformer_jax.model.transformer import Transformer
from transformer_jax.tasks.translation import TASK

BEAMS, LENGTH = 5, 11
VALID = np.arange(SOURCE) < SOURCE - 3


class Example:
  """A model, an encoded sentence, and its two ways to decode."""

  def __init__(self, **changes):
    self.model = Transformer(options(**changes))
    self.params = random_params(Config(model=self.model.config), TASK)
    source = np.random.default_rng(0).integers(CONFIG.vocab_size, size=SOURCE)
    mask = masking.padding_mask(VALID, VALID)
    self.memory = jax.jit(lambda: self.apply(source, np.arange(SOURCE), mask, method="encode"))()
    self.step = jax.jit(lambda *args: self.apply(*args, method="decode_step"))
    self.whole = jax.jit(jax.vmap(self._whole, (0, None)))
    self.start = jax.jit(self._start)

  def apply(self, *args, method):
    return self.model.apply({"params": self.params}, *args, method=method)

  def _start(self, valid):
    memory = self.apply(self.memory, valid, method="precompute_cross_attention")
    return self.apply(memory, LENGTH, BEAMS, method="init_cache")

  def _whole(self, tokens, first=0):
    """Decodes `[length]` tokens at once, the first of which is at position `first` -> `[length, model]`."""
    cross_mask = jnp.broadcast_to(VALID, (LENGTH, SOURCE))
    positions, mask = first + jnp.arange(LENGTH), masking.causal_mask(LENGTH)
    return self.apply(tokens, positions, self.memory, mask, cross_mask, method="decode")


OPTIONS = {"pre_norm": True, "learned_positions": True, "attention_bias": True, "attention_window": 3}
OPTIONS |= {"encoder_layers": 1, "decoder_layers": 3}


@pytest.fixture(scope="module", params=[{}, pytest.param(OPTIONS, marks=pytest.mark.long)])
def example(request):
  return Example(**request.param)


def test_beams_that_change_places_equal_the_whole_path_of_each(example):
  """Parents are random at every step: hypotheses are doubled, dropped and re-ordered."""
  generator = np.random.default_rng(1)
  cache, paths = example.start(VALID), np.zeros((BEAMS, LENGTH), np.int64)
  for position in range(LENGTH):
    parents = generator.integers(BEAMS, size=BEAMS)
    tokens = generator.integers(CONFIG.vocab_size, size=BEAMS)
    paths = paths[parents]
    paths[:, position] = tokens
    hidden, cache = example.step(cache, jnp.int32(position), parents, tokens)
    np.testing.assert_allclose(hidden, example.whole(paths, 0)[:, position], atol=1e-5)


def unit_in_the_last_place(x):
  """The distance of a bfloat16 number, which has 8 bits, to the next one."""
  return 2.0 ** (np.floor(np.log2(np.abs(x))) - 7)


def test_in_bfloat16_a_step_is_the_whole_path_to_the_last_place_and_another_position_is_not():
  """Sums in float32 may have another order, so that numbers are rounded to the neighbour of a bfloat16 number."""
  example, generator = Example(dtype=Dtype.BFLOAT16, num_layers=1), np.random.default_rng(1)
  logits = jax.jit(lambda hidden: example.apply(hidden, method="logits"))
  table = np.abs(np.asarray(example.params["target_embedding"]["table"], np.float64))
  cache, paths = example.start(VALID), np.zeros((BEAMS, LENGTH), np.int64)
  assert {x.dtype for x in jax.tree.leaves((cache.past, cache.memory.keys_values))} == {jnp.dtype("bfloat16")}
  for position in range(LENGTH):
    parents = generator.integers(BEAMS, size=BEAMS)
    paths = paths[parents]
    paths[:, position] = generator.integers(CONFIG.vocab_size, size=BEAMS)
    hidden, cache = example.step(cache, jnp.int32(position), parents, paths[:, position])
    assert hidden.dtype == jnp.bfloat16
    bound = unit_in_the_last_place(np.asarray(hidden, np.float64)) @ table.T
    expected, wrong = (logits(example.whole(paths, first)[:, position]) for first in (0, 1))
    assert np.all(np.abs(logits(hidden) - expected) <= bound)
    assert np.all(np.any(np.abs(logits(hidden) - wrong) > 2 * bound, axis=1))


def test_what_is_not_yet_written_is_not_read(example):
  clean = example.start(VALID)
  dirty = clean.replace(past=jax.tree.map(lambda x: x + 1e3, clean.past), ancestors=clean.ancestors + 3)
  tokens, parents = np.arange(BEAMS), np.array([0, 0, 3, 1, 2])
  for position in range(3):
    expected, clean = example.step(clean, jnp.int32(position), parents, tokens)
    hidden, dirty = example.step(dirty, jnp.int32(position), parents, tokens)
    np.testing.assert_array_equal(hidden, expected)


def test_cross_attention_keys_and_values_are_computed_once(example):
  """The beams share them, and a step hands them on as they are."""
  config, cache = example.model.config, example.start(VALID)
  assert [(k.shape, v.shape) for k, v in cache.memory.keys_values] == [
    ((config.num_heads, config.d_k, SOURCE), (config.num_heads, SOURCE, config.d_v))
  ] * config.decoder_depth
  np.testing.assert_array_equal(cache.memory.mask, VALID[None])
  _, after = example.step(cache, jnp.int32(0), np.zeros(BEAMS, int), np.arange(BEAMS))
  jax.tree.map(np.testing.assert_array_equal, after.memory, cache.memory)


def test_sentences_at_different_positions_equal_each_alone(example):
  """The second of the three enters later, and its cache is one that was used."""
  generator = np.random.default_rng(2)
  caches = [example.start(VALID), example.start(np.arange(SOURCE) < 2), example.start(VALID)]
  together, parents = jax.tree.map(lambda *x: jnp.stack(x), *caches), generator.integers(BEAMS, size=(LENGTH, 3, BEAMS))
  tokens, positions = generator.integers(CONFIG.vocab_size, size=(LENGTH, 3, BEAMS)), np.arange(3)[::-1].copy()
  step = jax.jit(jax.vmap(lambda *args: example.apply(*args, method="decode_step")))
  for time in range(LENGTH - 2):
    if time == 5:
      caches[1], positions[1] = example.start(VALID), 0
      memory = jax.tree.map(lambda old, new: old.at[1].set(new), together.memory, caches[1].memory)
      together = together.replace(memory=memory)
    hidden, together = step(together, positions, parents[time], tokens[time])
    for i in range(3):
      alone, caches[i] = example.step(caches[i], jnp.int32(positions[i]), parents[time, i], tokens[time, i])
      np.testing.assert_allclose(hidden[i], alone, atol=1e-5)
    positions += 1


HEADS, D_K, D_V = 2, 3, 7


def random_keys_values(generator, *axes):
  return tuple(generator.normal(size=(*axes, HEADS, d)).astype(np.float32) for d in (D_K, D_V))


def test_load_is_the_inverse_of_store():
  keys_values = random_keys_values(np.random.default_rng(3), LENGTH)
  keys, values = caching.store(tuple(map(jnp.asarray, keys_values)))
  assert (keys.shape, values.shape) == ((HEADS, D_K, LENGTH), (HEADS, LENGTH, D_V))
  jax.tree.map(np.testing.assert_array_equal, caching.load((keys, values)), keys_values)


def test_append_writes_at_each_sentences_own_position():
  generator = np.random.default_rng(4)
  past = random_keys_values(generator, 3, LENGTH * BEAMS)
  new = random_keys_values(generator, 3, BEAMS)
  positions = np.array([LENGTH - 1, 0, 4])
  found = jax.vmap(lambda past, *args: caching.load(caching.append(caching.store(past), *args)))(past, positions, new)
  for x, old, added in zip(found, past, new, strict=True):
    expected = old.copy()
    for sentence, position in enumerate(positions):
      for beam in range(BEAMS):
        expected[sentence, position * BEAMS + beam] = added[sentence, beam]
    np.testing.assert_array_equal(x, expected)
