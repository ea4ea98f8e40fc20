"""Rematerialisation changes what is kept for the backward pass, and no result, gradient or parameter."""

import jax
import numpy as np
import pytest

from tests.model.example import SOURCE, TARGET, options, random_params
from transformer_jax.config import Config
from transformer_jax.model.config import Remat
from transformer_jax.model.transformer import Transformer
from transformer_jax.tasks.translation import TASK

DROPPING = options(dropout=0.3, attention_dropout=0.2)
WEIGHTS = (DROPPING.num_heads, TARGET, SOURCE)  # of attention over the source
INNER = (TARGET, DROPPING.d_ff)  # the largest array of a layer


def gradient_of(remat: Remat):
  """For the sum of the outputs' squares: a function to its gradients, and one to its backward pass."""
  config = options(dropout=0.3, attention_dropout=0.2, remat=remat)
  generator = np.random.default_rng(0)
  source, target = (generator.integers(4, config.vocab_size, length) for length in (SOURCE, TARGET))

  def loss(params):
    rngs = {"dropout": jax.random.key(7, impl="threefry2x32")}
    output = Transformer(config).apply({"params": params}, source, target, deterministic=False, rngs=rngs)
    return (output**2).sum()

  return jax.grad(loss), lambda params: jax.vjp(loss, params)[1]


@pytest.fixture(scope="module")
def params():
  return random_params(Config(model=DROPPING), TASK)


@pytest.mark.long
@pytest.mark.parametrize("remat", [Remat.LAYER, Remat.ATTENTION])
def test_gradients_are_equal_with_dropout_on(params, remat):
  plain, again = (jax.jit(gradient_of(one)[0])(params) for one in (Remat.NONE, remat))
  assert jax.tree.structure(plain) == jax.tree.structure(again)
  for one, other in zip(jax.tree.leaves(plain), jax.tree.leaves(again), strict=True):
    np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5 * np.abs(one).max())


@pytest.mark.parametrize(
  ("remat", "weights", "inner"),
  [(Remat.NONE, True, True), (Remat.ATTENTION, False, True), (Remat.LAYER, False, False)],
)
def test_what_is_kept(params, remat, weights, inner):
  kept = {leaf.shape for leaf in jax.tree.leaves(jax.eval_shape(gradient_of(remat)[1], params))}
  assert (WEIGHTS in kept, INNER in kept) == (weights, inner)
