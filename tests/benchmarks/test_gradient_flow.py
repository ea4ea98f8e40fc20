"""Gradients of losses with respect to earlier states, against NumPy, tables of embeddings and the models themselves."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import multi30k
from tests.benchmarks.state_reference import rnn_gradients
from tests.model.example import float64, options, random_params
from tests.recurrent.example import CONFIGS, SIZES, example
from tests.recurrent.reference import embedded, rnn_step, shifted
from transformer_jax import registry
from transformer_jax.config import Config, flags
from transformer_jax.model.special_tokens import BOS
from transformer_jax.model.sublayer import Sublayer
from transformer_jax.recurrent.config import Cell, SequenceToSequenceConfig
from transformer_jax.tasks.translation import TASK

SOURCE, TARGET = np.array([7, 5, 9]), np.array([11, 6, 23, 8, 13])
PLAIN_RNN = SequenceToSequenceConfig(**SIZES, num_layers=1, reverse_source=False, cell=Cell.RNN)


@pytest.fixture
def gradients(program):
  return program("state_gradients")


@pytest.fixture
def plain_rnn(monkeypatch):
  monkeypatch.setitem(CONFIGS, "plain rnn", PLAIN_RNN)
  return example("plain rnn")


def test_norms_of_a_simple_recurrent_network_are_those_of_its_jacobians_product(gradients, plain_rnn):
  model, params = plain_rnn
  found = gradients.norms(model, params, SOURCE, TARGET)
  expected = rnn_gradients(float64(params), SOURCE, TARGET)
  np.testing.assert_allclose(found.source, np.linalg.norm(expected.source, axis=-1), rtol=1e-4)
  behind = np.tri(len(TARGET), k=-1, dtype=bool)
  np.testing.assert_allclose(found.target[behind], np.linalg.norm(expected.target, axis=-1)[behind], rtol=1e-4)


@pytest.mark.long
def test_the_bounds_of_a_simple_recurrent_network(gradients, plain_rnn):
  """The product of the steps' largest singular values is at most that of |U|, and neither is below the norm."""
  model, params = plain_rnn
  assert gradients.has_bound(model) and not gradients.has_bound(example("gru")[0])
  norms, bound = (function(model, params, SOURCE, TARGET) for function in (gradients.norms, gradients.bound))
  expected = rnn_gradients(float64(params), SOURCE, TARGET)
  behind = np.tri(len(TARGET), k=-1, dtype=bool)
  np.testing.assert_allclose(bound.of_steps[behind], expected.bound[behind], rtol=1e-4)
  assert np.all(bound.of_steps[behind] >= 0.9999 * norms.target[behind])
  assert np.all(bound.of_matrix[behind] >= bound.of_steps[behind])


@pytest.mark.long
def test_the_slopes_of_tanh(gradients, plain_rnn):
  """Those of the states that h_i = tanh(x_i W + h_(i-1) U + b) gives in NumPy."""
  model, params = plain_rnn
  found, exact = gradients.slopes(model, params, SOURCE, TARGET), float64(params)
  state = np.zeros(len(exact["output"]["kernel"]))
  for side, tokens, own in (("encoder", SOURCE, found.encoder), ("decoder", shifted(TARGET)[:-1], found.decoder)):
    states = []
    for x in embedded(exact, tokens):
      states.append(state := rnn_step(exact[side]["rnn_0"], x, state))
    np.testing.assert_allclose(own, 1 - np.array(states) ** 2, rtol=1e-4, atol=1e-6)  # 1 - h^2 of h near 1


@pytest.mark.long
@pytest.mark.parametrize("name", ["gru", "reversed", "bahdanau", "luong-general"])
def test_the_losses_are_those_of_the_model(gradients, name):
  """And a state that a bump changes is one that the later losses read, and the earlier ones do not."""
  model, params = example(name)
  zeros = gradients.no_bumps(model, params, SOURCE, TARGET)
  hidden = model.apply({"params": params}, SOURCE, np.array([BOS, *TARGET[:-1]]))
  logits = model.apply({"params": params}, hidden, method="logits")
  expected = -np.asarray(jax.nn.log_softmax(logits))[np.arange(len(TARGET)), TARGET]
  losses = jax.jit(lambda bumps: gradients.losses(model, params, SOURCE, TARGET, bumps))
  np.testing.assert_allclose(losses(zeros), expected, rtol=1e-5)
  bumped = zeros._replace(target=jax.tree.map(lambda x: x.at[2].add(1), zeros.target))
  changed = np.abs(losses(bumped) - expected) > 1e-4
  assert changed.tolist() == [False, False, False, True, True]
  bumped = zeros._replace(source=jax.tree.map(lambda x: x.at[1].add(1), zeros.source))
  assert np.all(np.abs(losses(bumped) - expected) > 1e-6)


@pytest.mark.long
def test_norms_of_the_transformer_are_those_of_its_tables_of_embeddings(gradients):
  """With three tables, and tokens that occur once, a row of a table is the vector of one token, divided by sqrt(d)."""
  config = options(share_embeddings=False, share_logits=False)
  model, params = registry.module(config), random_params(Config(model=config), TASK)
  found = gradients.norms(model, params, SOURCE, TARGET)
  inputs = np.array([BOS, *TARGET[:-1]])

  @jax.jit
  @jax.jacrev
  def jacobian(params):
    hidden = model.apply({"params": params}, SOURCE, inputs)
    logits = model.apply({"params": params}, hidden, method="logits")
    return -jax.nn.log_softmax(logits)[jnp.arange(len(TARGET)), TARGET]

  tables = jacobian(params)
  for name, tokens, norms in (
    ("own_source_embedding", SOURCE, found.source),
    ("target_embedding", inputs, found.target),
  ):
    expected = np.linalg.norm(tables[name]["table"][:, tokens], axis=-1) / config.d_model**0.5
    np.testing.assert_allclose(norms, expected, rtol=1e-4, atol=1e-6)


def test_without_residuals_a_sublayer_normalises_f_alone(program):
  config = options()
  sublayer, x, y = Sublayer(config), jnp.arange(44.0).reshape(2, 22), jnp.arange(44.0).reshape(2, 22) ** 1.5
  params = {"params": {"norm": {"scale": jnp.ones(22), "bias": jnp.zeros(22)}}}
  with nn.intercept_methods(program("without_residuals").without_residual):
    found = sublayer.apply(params, x, lambda _: y, deterministic=True)
  centred = y - y.mean(axis=1, keepdims=True)
  np.testing.assert_allclose(found, centred / centred.std(axis=1, keepdims=True), atol=1e-5)


def test_the_config_without_residuals_is_of_its_own_family(program):
  family = program("without_residuals")
  config = flags.read_config(family.__file__, {})
  assert type(registry.module(config.model)) is family.WithoutResiduals
  assert {**vars(config.model)} == vars(multi30k.get_config("plain").model)


def test_means_are_over_the_pairs_of_tokens_with_one_distance(program):
  """In the order of reading: a state of the source is passed on by all of its later tokens."""
  flow = program("gradient_flow")
  forward, backward = (flow.distances(CONFIGS[name], 3) for name in ("plain", "reversed"))
  assert forward["target"].tolist() == [[0, -1, -2], [1, 0, -1], [2, 1, 0]]
  assert forward["source"].tolist() == [[3, 2, 1], [4, 3, 2], [5, 4, 3]]
  assert backward["source"].tolist() == [[1, 2, 3], [2, 3, 4], [3, 4, 5]]
  norms = np.array([[[9, 9, 9], [2, 9, 9], [5, 8, 9]]] * 2)
  np.testing.assert_allclose(flow.by_distance(forward["target"], norms), [4, 5])
