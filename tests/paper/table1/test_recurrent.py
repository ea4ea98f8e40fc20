import jax
import numpy as np
import pytest

from tests.model.example import float64, normal, perturbed
from transformer_jax.paper.table1.recurrent import Recurrent

LENGTH, D = 13, 5


def example():
  module, x = Recurrent(D), normal(0, LENGTH, D)
  return module, perturbed(module.init(jax.random.key(0), x)["params"]), x


def test_each_state_is_of_the_input_and_the_state_before():
  module, params, x = example()
  exact, state, expected = float64(params), np.zeros(D), []
  for position in x:
    entering = position @ exact["input"]["kernel"] + exact["input"]["bias"]
    state = np.tanh(entering + state @ exact["state"])
    expected.append(state)
  np.testing.assert_allclose(module.apply({"params": params}, x), expected, atol=1e-5)


@pytest.mark.long
def test_steps_side_by_side_come_to_the_same_states():
  module, params, x = example()
  whole = np.asarray(module.apply({"params": params}, x))
  steps = module.apply({"params": params}, x, LENGTH, method="steps")
  for i in range(LENGTH):  # position i is done after i + 1 steps
    np.testing.assert_allclose(steps[i:, i], np.broadcast_to(whole[i], (LENGTH - i, D)), atol=1e-5)
