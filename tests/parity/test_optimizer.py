"""Twenty-three updates against `torch.optim.Adam` and `AdamW` with eq. 3 as the schedule."""

import numpy as np
import optax
import pytest

from tests.parity.peer import assert_close, required
from transformer_jax.config import Config, Optimizer, TrainConfig
from transformer_jax.model.config import ModelConfig
from transformer_jax.paper import formulas
from transformer_jax.training.optimizer import optimizer

torch = required("torch")

D_MODEL, WARMUP, STEPS = 64, 7, 23
SHAPES = {"matrix": (5, 11), "vector": (13,)}


@pytest.mark.parametrize("recipe", [{}, {"optimizer": Optimizer.ADAMW, "weight_decay": 0.3, "clip_norm": 2.0}])
def test_trajectory(recipe):
  generator = np.random.default_rng(0)
  params = {name: 0.1 * generator.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}
  # Some are always of the size of epsilon, so that it matters.
  sizes = {name: 10.0 ** generator.integers(-10, 1, size=shape) for name, shape in SHAPES.items()}

  peers = {name: torch.nn.Parameter(torch.tensor(array)) for name, array in params.items()}
  options = {"lr": 1.0, "betas": (0.9, 0.98), "eps": 1e-9}
  adam = torch.optim.Adam(peers.values(), **options)
  if recipe:
    decays = [{"params": [peers["matrix"]], "weight_decay": 0.3}, {"params": [peers["vector"]], "weight_decay": 0.0}]
    adam = torch.optim.AdamW(decays, **options)
  schedule = torch.optim.lr_scheduler.LambdaLR(adam, lambda count: formulas.learning_rate(count + 1, D_MODEL, WARMUP))

  update = optimizer(Config(model=ModelConfig(d_model=D_MODEL), train=TrainConfig(warmup_steps=WARMUP, **recipe)))
  state = update.init(params)
  for step in range(1, STEPS + 1):
    gradients = {name: np.float32(generator.standard_normal(size.shape) * size) for name, size in sizes.items()}
    for name, peer in peers.items():
      peer.grad = torch.from_numpy(gradients[name])
    if recipe:
      norm = torch.nn.utils.clip_grad_norm_(peers.values(), 2.0)
      assert step % 2 or norm > 2.0
    adam.step()
    schedule.step()

    updates, state = update.update(gradients, state, params)
    params = optax.apply_updates(params, updates)
    for name, peer in peers.items():
      assert_close(params[name], peer.detach(), f"{name} after update {step}")
