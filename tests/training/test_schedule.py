import jax
import jax.numpy as jnp
import pytest

from transformer_jax.config import Config, TrainConfig
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


def test_the_peak_of_the_base_model_is_at_step_4000():
  rates = inverse_square_root(512, 4000)(jnp.arange(8000))
  assert int(jnp.argmax(rates)) + 1 == 4000
  assert float(jnp.max(rates)) == pytest.approx(6.98771e-4, rel=1e-6)


@pytest.mark.parametrize("step", [1, 7, 13, 14, 1009])
def test_another_peak_keeps_the_shape(step):
  config = Config(model=ModelConfig(d_model=64), train=TrainConfig(warmup_steps=13, peak_learning_rate=3e-3))
  expected = 3e-3 * formulas.learning_rate(step, 64, 13) / formulas.learning_rate(13, 64, 13)
  assert float(learning_rate(config)(step - 1)) == pytest.approx(expected, rel=1e-6)
