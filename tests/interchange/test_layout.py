"""Parameters in the layout of other libraries, against the definition element by element."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.example import options
from transformer_jax.config import Config
from transformer_jax.interchange import marian_hf
from transformer_jax.interchange.layout import Layout, to_ours, to_theirs
from transformer_jax.interchange.sinusoids import halves
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.params import by_name
from transformer_jax.model.positional_encoding import sinusoids
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.step import init_params

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
  np.testing.assert_allclose(sinusoids(jnp.arange(31), 22)[:, halves(22)], expected, atol=5e-6)


@pytest.mark.parametrize("changes", [{}, {"attention_bias": True, "share_embeddings": False}])
def test_every_parameter_has_one_name(changes):
  config: ModelConfig = options(d_model=21 + 3, d_k=None, d_v=None, **changes)
  ours = set(by_name(jax.eval_shape(lambda: init_params(Config(model=config), TASK))))
  names = marian_hf.names(config)
  assert {name.ours for name in names if not name.ours.endswith("/bias")} <= ours <= {name.ours for name in names}
  assert len({name.theirs for name in names}) == len(names)
