"""The probability of teacher forcing against the paper's formulas."""

import numpy as np
import pytest

from transformer_jax.config import Decay, TrainConfig
from transformer_jax.training.scheduled_sampling import forcing_probability

STEPS = np.array([0, 1, 7, 29, 83, 1000, 100_000])


@pytest.mark.parametrize(
  ("decay", "formula"),
  [
    (Decay.NONE, lambda i: 1.0),
    (Decay.LINEAR, lambda i: max(0.25, 1 - i / 41)),
    (Decay.INVERSE_SIGMOID, lambda i: 41 / (41 + np.exp(i / 41)) if i < 20_000 else 0.0),
  ],
)
def test_the_probability_of_teacher_forcing(decay, formula):
  config = TrainConfig(scheduled_sampling=decay, sampling_k=41, sampling_least=0.25)
  found = [forcing_probability(config, step) for step in STEPS]
  np.testing.assert_allclose(found, [formula(i) for i in STEPS], rtol=1e-5)
