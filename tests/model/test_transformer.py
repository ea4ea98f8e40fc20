import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model import reference
from tests.model.example import (
  CONFIG,
  SOURCE,
  TARGET,
  dropout_shapes,
  float64,
  module_params,
  normal,
  options,
  random_params,
  recorded_dropout,
)
from transformer_jax.config import Config
from transformer_jax.model import masking
from transformer_jax.model.config import Dtype, ModelConfig, Start
from transformer_jax.model.decoder import Decoder
from transformer_jax.model.encoder import EncoderLayer
from transformer_jax.model.special_tokens import PAD
from transformer_jax.model.transformer import Transformer
from transformer_jax.paper import formulas
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.initialization import init_params

# Two sentence pairs and padding, as in a packed row.
SOURCE_SEGMENTS = np.array([1] * 5 + [2] * 7 + [0])
TARGET_SEGMENTS = np.array([1] * 3 + [2] * 11 + [0] * 3)


@pytest.fixture(scope="module")
def inputs():
  generator = np.random.default_rng(0)
  return {
    "source": generator.integers(CONFIG.vocab_size, size=SOURCE),
    "target": generator.integers(CONFIG.vocab_size, size=TARGET),
    "source_positions": generator.permutation(SOURCE),
    "target_positions": generator.permutation(TARGET),
    "source_mask": np.asarray(masking.segment_mask(SOURCE_SEGMENTS, SOURCE_SEGMENTS)),
    "target_mask": np.asarray(
      masking.combine(masking.causal_mask(TARGET), masking.segment_mask(TARGET_SEGMENTS, TARGET_SEGMENTS))
    ),
    "cross_mask": np.asarray(masking.segment_mask(TARGET_SEGMENTS, SOURCE_SEGMENTS)),
  }


def logits_of(model: Transformer, **inputs):
  return model.logits(model(**inputs))


@functools.cache
def compiled(config: ModelConfig):
  """A function (params, inputs) -> logits, and parameters."""
  model = Transformer(config)
  params = random_params(Config(model=config), TASK)
  return jax.jit(lambda params, inputs: model.apply({"params": params}, method=logits_of, **inputs)), params


@pytest.fixture(scope="module")
def plain():
  return compiled(CONFIG)


@pytest.mark.parametrize("pre_norm", [False, pytest.param(True, marks=pytest.mark.long)])
def test_encoder_layer(pre_norm, inputs):
  layer, x, mask = EncoderLayer(options(pre_norm=pre_norm)), normal(0, SOURCE, CONFIG.d_model), inputs["source_mask"]
  params = module_params(layer, x, mask, deterministic=True)
  result = jax.jit(lambda: layer.apply({"params": params}, x, mask, deterministic=True))()
  np.testing.assert_allclose(result, formulas.encoder_layer(float64(params), x, mask, pre_norm=pre_norm), atol=2e-5)


def test_decoder_layer(inputs):
  decoder = Decoder(options(num_layers=1))
  x, memory = normal(0, TARGET, CONFIG.d_model), normal(1, SOURCE, CONFIG.d_model)
  masks = inputs["target_mask"], inputs["cross_mask"]
  params = module_params(decoder, x, memory, *masks, deterministic=True)
  result = jax.jit(lambda: decoder.apply({"params": params}, x, memory, *masks, deterministic=True))()
  expected = formulas.decoder_layer(float64(params)["layers_0"], x, memory, *masks)
  np.testing.assert_allclose(result, expected, atol=2e-5)


@pytest.mark.parametrize(
  "changes",
  [
    {},
    {"pre_norm": True, "attention_bias": True},
    {"num_layers": 1, "learned_positions": True},
    {"num_layers": 1, "logits_bias": True, "start": Start.PAD},
    {"num_layers": 1, "share_logits": False, "d_k": None, "num_heads": 2},
    {"num_layers": 1, "share_embeddings": False, "d_v": None, "num_heads": 11},
    {"num_layers": 1, "pre_norm": True, "learned_positions": True, "share_embeddings": False, "share_logits": False},
    {"num_layers": 1, "attention_window": 2},
    {"encoder_layers": 3, "decoder_layers": 1},
    {"num_layers": 1, "share_embeddings": False, "source_vocab_size": 37},
  ],
  ids=[
    "paper",
    "pre_norm-bias",
    "learned_positions",
    "logits_bias",
    "own_logits",
    "own_source",
    "all",
    "window",
    "deep_encoder",
    "two",
  ],
)
def test_logits(changes, inputs):
  config = options(**changes)
  apply, params = compiled(config)
  inputs = inputs | {"source": inputs["source"] + config.vocab_sizes[0] - CONFIG.vocab_size}
  result = apply(params, inputs)
  assert result.shape == (TARGET, config.vocab_size) and result.dtype == jnp.float32
  np.testing.assert_allclose(result, reference.transformer(config, float64(params), **inputs), atol=5e-5)


def test_a_target_may_begin_with_pad():
  """Without masks of its own a sentence pair has those of the same pair behind BOS."""
  model, masks = Transformer(options(num_layers=1, start=Start.PAD)), []
  for start, first in ((Start.PAD, PAD), (Start.BOS, 2)):
    pair = np.array([7, 5, 3]), np.array([first, 9, PAD, PAD])
    masks.append(masking.for_pair(*map(jnp.asarray, pair), start=options(start=start).start_token))
  jax.tree.map(np.testing.assert_array_equal, *masks)
  assert model.config.start_token == PAD


def test_tables_are_shared_as_asked():
  def tables(**changes):
    params = jax.eval_shape(lambda: init_params(Config(model=options(num_layers=1, **changes)), TASK))
    return {name for name, part in params.items() if "table" in part}

  assert tables() == {"target_embedding"}
  assert tables(share_embeddings=False) == {"target_embedding", "own_source_embedding"}
  assert tables(share_logits=False) == {"target_embedding", "own_output"}
  positions = {"source_positions", "target_positions"}
  assert tables(learned_positions=True) == {"target_embedding"} | positions


def test_a_later_target_token_changes_no_earlier_logit(plain, inputs):
  apply, params = plain
  before = np.asarray(apply(params, inputs))
  for position in (3, 8, 13):  # of the second segment: 3 to 13
    target = inputs["target"].copy()
    target[position] = (target[position] + 1) % CONFIG.vocab_size
    after = np.asarray(apply(params, inputs | {"target": target}))
    np.testing.assert_array_equal(after[:position], before[:position])
    assert np.all(np.any(after[position:14] != before[position:14], axis=1))


def test_a_source_token_changes_no_logit_of_another_segment(plain, inputs):
  apply, params = plain
  before = np.asarray(apply(params, inputs))
  source = inputs["source"].copy()
  source[2] = (source[2] + 1) % CONFIG.vocab_size
  after = np.asarray(apply(params, inputs | {"source": source}))
  changed = np.any(after != before, axis=1)
  np.testing.assert_array_equal(changed, TARGET_SEGMENTS == 1)


def test_a_window_as_long_as_the_sequences_changes_nothing(inputs):
  apply, params = compiled(options(num_layers=1))
  wide, wide_params = compiled(options(num_layers=1, attention_window=max(SOURCE, TARGET) - 1))
  jax.tree.map(np.testing.assert_array_equal, wide_params, params)
  np.testing.assert_array_equal(wide(params, inputs), apply(params, inputs))


def test_a_token_outside_the_window_changes_no_logit(inputs):
  """In one layer a target token changes the next two positions of its segment."""
  apply, params = compiled(options(num_layers=1, attention_window=2))
  before = np.asarray(apply(params, inputs))
  for position in np.flatnonzero(TARGET_SEGMENTS):
    target = inputs["target"].copy()
    target[position] = (target[position] + 1) % CONFIG.vocab_size
    changed = np.any(np.asarray(apply(params, inputs | {"target": target})) != before, axis=1)
    distance = np.arange(TARGET) - position
    expected = (distance >= 0) & (distance <= 2) & (TARGET_SEGMENTS[position] == TARGET_SEGMENTS)
    np.testing.assert_array_equal(changed, expected)


def test_the_encoder_sees_to_both_sides_within_the_window(inputs):
  model = Transformer(options(num_layers=1, attention_window=2))
  params = random_params(Config(model=model.config), TASK)

  @jax.jit
  def encode(source):
    return model.apply({"params": params}, source, np.arange(SOURCE), inputs["source_mask"], method="encode")

  before = np.asarray(encode(inputs["source"]))
  for position in np.flatnonzero(SOURCE_SEGMENTS):
    source = inputs["source"].copy()
    source[position] = (source[position] + 1) % CONFIG.vocab_size
    changed = np.any(np.asarray(encode(source)) != before, axis=1)
    expected = (abs(np.arange(SOURCE) - position) <= 2) & (SOURCE_SEGMENTS[position] == SOURCE_SEGMENTS)
    np.testing.assert_array_equal(changed, expected)


def test_bfloat16(plain, inputs):
  apply, params = plain
  exact = apply(params, inputs)
  low, low_params = compiled(options(dtype=Dtype.BFLOAT16))
  assert {leaf.dtype for leaf in jax.tree.leaves(low_params)} == {jnp.dtype("float32")}
  result = low(params, inputs)
  assert result.dtype == jnp.float32
  # Each of 10 sub-layers rounds its input, its products and its output to 8 bits (2^-9, relative to about 1), and
  # LayerNorm brings them to the same size again, so that errors add up like noise: 2^-9 * sqrt(10 * 10) = 0.02.
  error = np.asarray(result - exact)[TARGET_SEGMENTS > 0] / np.std(exact)
  root_mean_square = np.sqrt(np.mean(error**2))
  assert 1e-4 < root_mean_square < 0.02  # it did compute in bfloat16, and well


def training_pass(config: ModelConfig, inputs):
  """The model with dropout, to be called without arguments."""
  params = init_params(Config(model=config), TASK)
  rngs = {"dropout": jax.random.key(0)}
  return lambda: Transformer(config).apply({"params": params}, **inputs, deterministic=False, rngs=rngs)


@pytest.mark.long
def test_dropout_is_where_the_paper_says_and_different_everywhere(inputs):
  """§5.4: on the output of each sub-layer and on the sums of embeddings and positions."""
  config = options(dropout=0.5)
  record = [(np.asarray(x), np.asarray(y)) for x, y in recorded_dropout(training_pass(config, inputs))]
  assert len(record) == 2 + (2 + 3) * config.num_layers
  shapes = [x.shape for x, _ in record]
  assert shapes.count((SOURCE, config.d_model)) == 1 + 2 * config.num_layers
  assert shapes.count((TARGET, config.d_model)) == 1 + 3 * config.num_layers
  zeroed = [(y == 0)[:SOURCE] for _, y in record]
  for i, one in enumerate(zeroed):
    # Of 286 elements half agree by chance.
    assert all(np.mean((one == other)[:5]) < 0.7 for other in zeroed[:i])

  table = init_params(Config(model=config), TASK)["target_embedding"]["table"]
  expected = reference.enter(np.asarray(table), None, inputs["source"], inputs["source_positions"])
  np.testing.assert_allclose(record[0][0], expected, atol=1e-5)


@pytest.mark.long
def test_attention_dropout_is_an_option(inputs):
  config = options(attention_dropout=0.5, num_layers=1)
  shapes = dropout_shapes(training_pass(config, inputs))
  heads = config.num_heads
  assert shapes == [(heads, SOURCE, SOURCE), (heads, TARGET, TARGET), (heads, TARGET, SOURCE)]


def parameters_by_formula(config):
  d, heads = config.d_model, config.num_heads
  attention = d * heads * (2 * (config.d_k or d // heads) + 2 * (config.d_v or d // heads))
  feed_forward = 2 * d * config.d_ff + config.d_ff + d
  norm = 2 * d
  encoder = attention + feed_forward + 2 * norm
  decoder = 2 * attention + feed_forward + 3 * norm
  return config.vocab_size * d + config.num_layers * (encoder + decoder)


BASE = ModelConfig(vocab_size=37_000)
BIG = dataclasses.replace(BASE, d_model=1024, d_ff=4096, num_heads=16)


@pytest.mark.parametrize(
  "config",
  [BASE, dataclasses.replace(BIG, num_layers=1), dataclasses.replace(BASE, d_k=16, d_v=32, num_layers=1)],
  ids=["base", "big", "B-dk16"],
)
def test_number_of_parameters(config):
  params = jax.eval_shape(lambda: init_params(Config(model=config), TASK))
  assert sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(params)) == parameters_by_formula(config)


def test_tokens_are_enough_for_a_padded_sentence_pair():
  """Without positions and masks: PAD is hidden, and the target sees its past."""
  function, params = compiled(options(num_layers=1))
  generator = np.random.default_rng(0)
  source, target = (generator.integers(4, CONFIG.vocab_size, size=n) for n in (SOURCE, TARGET))
  source[-3:], target[-5:] = PAD, PAD
  real, shown = source != PAD, target != PAD
  given = {
    "source": source,
    "target": target,
    "source_positions": np.arange(SOURCE),
    "target_positions": np.arange(TARGET),
    "source_mask": real[:, None] & real,
    "target_mask": np.tri(TARGET, dtype=bool) & shown[:, None] & shown,
    "cross_mask": shown[:, None] & real,
  }
  expected = np.asarray(function(params, given))
  np.testing.assert_array_equal(function(params, {"source": source, "target": target}), expected)
  unpadded = function(params, {"source": source[:-3], "target": target[:-5]})
  np.testing.assert_allclose(unpadded, expected[:-5], rtol=1e-4, atol=1e-5)
