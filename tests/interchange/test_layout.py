"""Parameters in the layout of other libraries, against the definition element by element."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.example import options
from transformer_jax.config import Config, DataConfig
from transformer_jax.interchange import bert, gpt2, marian_hf
from transformer_jax.interchange.layout import Layout, linear, renamed, to_ours, to_theirs
from transformer_jax.language.config import BERTClassifierConfig, BERTConfig, GPTConfig
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.params import by_name
from transformer_jax.model.positional_encoding import sinusoids
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.initialization import init_params
from transformer_jax.training.task import task_of

MODEL, HEADS, WIDTH, VOCAB = 10, 3, 5, 7


@pytest.mark.parametrize(
  ("layout", "shape", "theirs", "element"),
  [
    (Layout.VECTOR, (HEADS, WIDTH), (HEADS * WIDTH,), lambda x, s, i: x[i // WIDTH, i % WIDTH]),
    (Layout.MODEL_VECTOR, (MODEL,), (MODEL,), lambda x, s, i: x[s[i]]),
    (Layout.TABLE, (VOCAB, MODEL), (VOCAB, MODEL), lambda x, s, i, j: x[i, s[j]]),
    (Layout.FROM_MODEL, (MODEL, VOCAB), (VOCAB, MODEL), lambda x, s, i, j: x[s[j], i]),
    (
      *(Layout.FROM_MODEL, (MODEL, HEADS, WIDTH), (HEADS * WIDTH, MODEL)),
      lambda x, s, i, j: x[s[j], i // WIDTH, i % WIDTH],
    ),
    (
      *(Layout.TO_MODEL, (HEADS, WIDTH, MODEL), (MODEL, HEADS * WIDTH)),
      lambda x, s, i, j: x[j // WIDTH, j % WIDTH, s[i]],
    ),
    (
      *(Layout.CONV_FROM_MODEL, (MODEL, HEADS, WIDTH), (MODEL, HEADS * WIDTH)),
      lambda x, s, i, j: x[s[i], j // WIDTH, j % WIDTH],
    ),
    (
      *(Layout.CONV_TO_MODEL, (HEADS, WIDTH, MODEL), (HEADS * WIDTH, MODEL)),
      lambda x, s, i, j: x[i // WIDTH, i % WIDTH, s[j]],
    ),
  ],
)
def test_each_number_is_in_its_place_and_comes_back(layout, shape, theirs, element):
  order = np.random.default_rng(0).permutation(MODEL)
  ours = np.arange(np.prod(shape)).reshape(shape)
  found = to_theirs(ours, layout, order)
  assert found.shape == theirs
  for place in np.ndindex(theirs):
    assert found[place] == element(ours, order, *place)
  np.testing.assert_array_equal(to_ours(found, layout, order, shape), ours)


def test_sinusoids_in_halves():
  angles = np.arange(31)[:, None] * 10_000.0 ** (-np.arange(0, 22, 2) / 22)
  expected = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
  np.testing.assert_allclose(sinusoids(jnp.arange(31), 22)[:, marian_hf.halves(22)], expected, atol=5e-6)


@pytest.mark.parametrize("changes", [{}, {"attention_bias": True, "share_embeddings": False}])
def test_every_parameter_has_one_name(changes):
  config: ModelConfig = options(d_model=21 + 3, d_k=None, d_v=None, **changes)
  ours = set(by_name(jax.eval_shape(lambda: init_params(Config(model=config), TASK))))
  names = marian_hf.names(config)
  assert {name.ours for name in names if not name.ours.endswith("/bias")} <= ours <= {name.ours for name in names}
  assert len({name.theirs for name in names}) == len(names)


LANGUAGE = {"vocab_size": 37, "num_layers": 2, "d_model": 22, "d_ff": 29, "num_heads": 2, "max_positions": 19}


@pytest.mark.parametrize(
  ("names", "model", "fused"),
  [
    (bert.names, BERTConfig(**LANGUAGE), 0),
    (bert.names, BERTClassifierConfig(**LANGUAGE), 0),
    (gpt2.names, GPTConfig(**LANGUAGE, pre_norm=True), 8),  # of three parameters one, in two layers, twice
  ],
)
def test_every_parameter_of_a_language_model_has_one_name(names, model, fused):
  config = Config(data=DataConfig(row_length=19), model=model)
  ours = set(by_name(jax.eval_shape(lambda: init_params(config, task_of(model)))))
  found = names(model)
  assert {name.ours for name in found} == ours and len(found) == len(ours)
  assert len({name.theirs for name in found}) == len(found) - fused


def test_parts_of_one_parameter():
  names = [name for part in "qkv" for name in linear(part, "all", Layout.CONV_FROM_MODEL)]
  ours = {f"{part}/kernel": np.full((MODEL, HEADS, WIDTH), i) for i, part in enumerate("qkv")}
  ours |= {f"{part}/bias": np.full((HEADS, WIDTH), i) for i, part in enumerate("qkv")}
  theirs = renamed(ours, names, np.arange(MODEL))
  expected = np.repeat(np.arange(3), HEADS * WIDTH)
  np.testing.assert_array_equal(theirs["all.bias"], expected)
  np.testing.assert_array_equal(theirs["all.weight"], np.tile(expected, (MODEL, 1)))
