"""Eq. 3 against the inverse square root of Hugging Face Transformers."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.parity.peer import required
from transformer_jax.config import Config, TrainConfig
from transformer_jax.model.config import ModelConfig
from transformer_jax.training.optimizer import learning_rate

torch = required("torch")
transformers = required("transformers")


def peer_rates(peak: float, warmup_steps: int, steps: int) -> list[float]:
  """The learning rates of steps 1, 2 and so on; step 0 is theirs alone and has the rate 0."""
  sgd = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=peak)
  schedule = transformers.get_inverse_sqrt_schedule(sgd, warmup_steps)
  rates = []
  for _ in range(steps):
    sgd.step()
    schedule.step()
    rates += schedule.get_last_lr()
  return rates


@pytest.mark.parametrize(
  ("d_model", "warmup_steps", "peak"),
  [(512, 4000, None), (1024, 4000, None), (64, 13, 3e-3)],
  ids=["base", "big", "own_peak"],
)
def test_rates(d_model, warmup_steps, peak):
  steps = 2 * warmup_steps + 3
  config = Config(
    model=ModelConfig(d_model=d_model), train=TrainConfig(warmup_steps=warmup_steps, peak_learning_rate=peak)
  )
  rates = learning_rate(config)(jnp.arange(steps))
  expected = peer_rates(peak or (d_model * warmup_steps) ** -0.5, warmup_steps, steps)
  np.testing.assert_allclose(rates, expected, rtol=1e-6)
