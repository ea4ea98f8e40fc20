import math

import jax
import jax.numpy as jnp
import pytest

from transformer_jax.config import Config, Schedule, TrainConfig
from transformer_jax.model.config import ModelConfig
from transformer_jax.paper import formulas
from transformer_jax.training.optimizer import learning_rate
from transformer_jax.training.schedule import inverse_square_root


@pytest.mark.parametrize("step", [1, 2, 3999, 4000, 4001, 100_000])
def test_base_model(step):
  schedule = inverse_square_root(512, 4000)
  # optax counts the updates before this one.
  expected = pytest.approx(formulas.learning_rate(step, 512, 4000), rel=1e-6)
  assert float(schedule(step - 1)) == expected
  assert float(jax.jit(schedule)(jnp.int32(step - 1))) == expected


@pytest.mark.parametrize("step", [1, 7, 13, 14, 1009])
def test_another_peak_keeps_the_shape(step):
  config = Config(model=ModelConfig(d_model=64), train=TrainConfig(warmup_steps=13, peak_learning_rate=3e-3))
  expected = 3e-3 * formulas.learning_rate(step, 64, 13) / formulas.learning_rate(13, 64, 13)
  assert float(learning_rate(config)(step - 1)) == pytest.approx(expected, rel=1e-6)


CURVES = {
  Schedule.CONSTANT: lambda share: 1.0,
  Schedule.LINEAR: lambda share: 1 - share,
  Schedule.COSINE: lambda share: (1 + math.cos(math.pi * share)) / 2,
}


@pytest.mark.parametrize("kind", CURVES)
def test_the_other_curves_are_those_of_their_formulas(kind):
  train = TrainConfig(warmup_steps=13, steps=101, peak_learning_rate=3e-3, schedule=kind)
  rates = learning_rate(Config(model=ModelConfig(d_model=64), train=train))(jnp.arange(101))
  for step, rate in enumerate(rates.tolist(), 1):
    expected = step / 13 if step <= 13 else CURVES[kind]((step - 13) / 89)
    assert rate == pytest.approx(3e-3 * expected, rel=1e-4)
  assert rates.dtype == jnp.float32 and min(rates) > 0


def test_the_other_curves_have_the_paper_s_peak():
  train = TrainConfig(warmup_steps=13, steps=101, schedule=Schedule.LINEAR)
  rates = learning_rate(Config(model=ModelConfig(d_model=64), train=train))(jnp.arange(101))
  assert int(jnp.argmax(rates)) + 1 == 13
  assert float(jnp.max(rates)) == pytest.approx(formulas.learning_rate(13, 64, 13), rel=1e-6)
