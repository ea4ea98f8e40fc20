"""A stack of LSTMs against `torch.nn.LSTM` with the same weights: states and all gradients."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.example import normal, perturbed
from tests.parity.peer import assert_close, required
from transformer_jax.model.config import Dtype
from transformer_jax.recurrent.stack import Stack

torch = required("torch")

INPUT, HIDDEN, LAYERS, SENTENCES, LENGTH = 23, 29, 3, 5, 17


def torch_lstm(params: Any) -> dict[str, np.ndarray]:
  """Our parameters in the names and the layout of `torch.nn.LSTM`, which has two biases where we have one."""
  result = {}
  for i in range(LAYERS):
    layer = params[f"lstm_{i}"]
    result[f"weight_ih_l{i}"] = np.asarray(layer["kernel"]).T
    result[f"weight_hh_l{i}"] = np.asarray(layer["recurrent"]).T
    result[f"bias_ih_l{i}"] = np.asarray(layer["bias"])
  return result


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reversed"])
def test_states_and_gradients(reverse):
  stack, x = Stack(INPUT, HIDDEN, LAYERS, 0.0, Dtype.FLOAT32), normal(0, SENTENCES, LENGTH, INPUT)
  start = LENGTH - 1 if reverse else 0
  restarts = np.arange(LENGTH) == start
  params = perturbed(stack.init(jax.random.key(0), x[0], restarts, deterministic=True)["params"])
  factors = normal(1, SENTENCES, LENGTH, HIDDEN)

  def hidden(params: Any, x: jax.Array) -> jax.Array:
    states = stack.apply({"params": params}, x, restarts, reverse=reverse, deterministic=True)
    return states[-1].hidden

  def loss(params: Any, x: jax.Array) -> jax.Array:
    return jnp.sum(jax.vmap(hidden, (None, 0))(params, x) * factors)

  found = jax.vmap(hidden, (None, 0))(params, x)
  for_params, for_x = jax.jit(jax.grad(loss, (0, 1)))(params, x)

  peer = torch.nn.LSTM(INPUT, HIDDEN, LAYERS, batch_first=True)
  weights = {name: torch.tensor(array) for name, array in torch_lstm(params).items()}
  zeros = {f"bias_hh_l{i}": torch.zeros(4 * HIDDEN) for i in range(LAYERS)}
  peer.load_state_dict(weights | zeros)
  order = slice(None, None, -1) if reverse else slice(None)  # torch reads from the left
  inputs = torch.tensor(x[:, order].copy(), requires_grad=True)
  expected, _ = peer(inputs)
  (expected * torch.tensor(factors[:, order].copy())).sum().backward()

  assert_close(found[:, order], expected.detach().numpy(), "states")
  assert_close(for_x[:, order], inputs.grad.numpy(), "gradient of x")
  gradients = torch_lstm(for_params)
  for name, parameter in peer.named_parameters():
    if not name.startswith("bias_hh"):
      assert_close(gradients[name], parameter.grad.numpy(), name)
