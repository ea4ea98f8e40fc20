"""Layer normalisation and its gradients against torch's, where epsilon matters: in the model it hardly does."""

import jax
import numpy as np
import pytest

from tests.parity.peer import assert_close, required
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.sublayer import layer_norm

torch = required("torch")

ROWS, MODEL = 7, 22


@pytest.mark.parametrize("size", [1e-3, 1.0])
def test_values_and_gradients(size):
  generator = np.random.default_rng(0)
  x, factors = generator.standard_normal((2, ROWS, MODEL)).astype(np.float32)
  scale, bias = generator.standard_normal((2, MODEL)).astype(np.float32)
  x *= np.float32(size)
  module = layer_norm(ModelConfig(d_model=MODEL, num_heads=2))

  def ours(x, scale, bias):
    return module.apply({"params": {"scale": scale, "bias": bias}}, x)

  peers = [torch.tensor(array, requires_grad=True) for array in (x, scale, bias)]
  expected = torch.nn.functional.layer_norm(peers[0], (MODEL,), *peers[1:], eps=1e-6)
  expected.backward(torch.from_numpy(factors))
  found, gradients_of = jax.vjp(ours, x, scale, bias)
  assert_close(found, expected.detach())
  for gradient, peer in zip(gradients_of(factors), peers, strict=True):
    assert_close(gradient, peer.grad)
