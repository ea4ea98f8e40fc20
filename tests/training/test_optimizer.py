import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from transformer_jax.config import Config, Optimizer, TrainConfig
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.params import by_name
from transformer_jax.paper import formulas
from transformer_jax.training.initialization import abstract_params
from transformer_jax.training.optimizer import moving_average, optimizer, updates_made


@pytest.mark.parametrize(("beta1", "beta2"), [(0.9, 0.98), (0.7, 0.95), (0.95, 0.7)])
def test_adam_with_the_schedule(beta1, beta2):
  default = TrainConfig()
  assert (default.beta1, default.beta2, default.epsilon) == (0.9, 0.98, 1e-9)  # §5.3
  config = Config(model=ModelConfig(d_model=64), train=TrainConfig(warmup_steps=3, beta1=beta1, beta2=beta2))
  generator = np.random.default_rng(0)
  start = generator.standard_normal((5, 7))
  # Some of the size of epsilon, so that it matters.
  gradients = generator.standard_normal((11, 5, 7)) * 10.0 ** generator.integers(-10, 1, size=(5, 7))
  rates = [formulas.learning_rate(step, 64, 3) for step in range(1, 12)]

  params = {"weights": np.float32(start)}
  update = optimizer(config)
  state = update.init(params)
  for gradient, expected in zip(gradients, formulas.adam(start, gradients, rates, beta1, beta2, 1e-9), strict=True):
    updates, state = update.update({"weights": np.float32(gradient)}, state, params)
    params = optax.apply_updates(params, updates)
    np.testing.assert_allclose(params["weights"], expected, atol=2e-6)


def test_moments_are_float32():
  params = {"weights": np.zeros((5, 7), np.float32)}
  moments = [leaf for leaf in jax.tree.leaves(optimizer(Config()).init(params)) if leaf.ndim]
  assert [leaf.dtype for leaf in moments] == [np.float32] * 2


@pytest.mark.parametrize("decay", [0.5, 0.999])
def test_the_moving_average_is_that_of_its_formula(decay):
  """With 0.5 the faster decay of the beginning ends after eight updates, with 0.999 it lasts."""
  values = np.random.default_rng(0).standard_normal((23, 5, 7))
  average, expected = {"weights": np.float32(values[0])}, values[0]
  for t, value in enumerate(values[1:], 1):
    average = moving_average(decay, average, {"weights": np.float32(value)}, jnp.int32(t))
    d = min(decay, (1 + t) / (10 + t))
    expected = d * expected + (1 - d) * value
    np.testing.assert_allclose(average["weights"], expected, atol=1e-6)
    assert average["weights"].dtype == np.float32


@pytest.mark.parametrize("decay", [0.9, 0.998, 0.99999])
def test_the_moving_average_of_equal_parameters_is_these(decay):
  """Bit for bit, as that of a frozen table must be."""
  params = {"weights": np.random.default_rng(0).standard_normal((23, 7)).astype(np.float32)}
  for step in (1, 7, 10**6):
    np.testing.assert_array_equal(moving_average(decay, params, params, jnp.int32(step))["weights"], params["weights"])


def test_a_slow_moving_average_does_not_lose_its_rate_to_rounding():
  """1 - 0.99999 has two digits in float32."""
  average = moving_average(0.99999, {"weights": np.zeros(7, np.float32)}, {"weights": np.ones(7, np.float32)}, 10**8)
  np.testing.assert_allclose(average["weights"], 1e-5, rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"clip_norm": 0.5}, {"clip_norm": 0.5, "optimizer": Optimizer.ADAMW}])
def test_updates_are_counted_with_any_options(options):
  update = optimizer(Config(train=TrainConfig(**options)))
  params = {"weights": jnp.ones((5, 7))}
  state = update.init(params)
  for count in range(3):
    assert updates_made(state) == count
    _, state = update.update(params, state, params)


def test_biases_and_gains_do_not_decay():
  """Also those of the heads, which have two axes."""
  model = ModelConfig(
    vocab_size=17, num_layers=1, d_model=6, d_ff=10, num_heads=2, attention_bias=True, logits_bias=True
  )
  config = Config(model=model, train=TrainConfig(optimizer=Optimizer.ADAMW, weight_decay=0.1))
  params = jax.tree.map(lambda leaf: jnp.ones(leaf.shape), abstract_params(config))
  update = optimizer(config)
  updates, _ = update.update(jax.tree.map(jnp.zeros_like, params), update.init(params), params)
  decays = {name: bool(jnp.all(leaf < 0)) for name, leaf in by_name(updates).items()}
  assert any(name.endswith("query/bias") and params_.ndim == 2 for name, params_ in by_name(params).items())
  assert decays == {name: name.endswith(("/kernel", "/table")) for name in decays}
