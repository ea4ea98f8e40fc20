"""Adam with beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9 (§5.3)."""

import optax

from transformer_jax.config import Config
from transformer_jax.training.schedule import inverse_square_root


def learning_rate(config: Config) -> optax.Schedule:
  """The recipe's schedule."""
  train = config.train
  return inverse_square_root(config.model.d_model, train.warmup_steps, train.peak_learning_rate)


def optimizer(config: Config) -> optax.GradientTransformation:
  """The recipe's optimizer, as an optax chain."""
  train = config.train
  return optax.chain(
    optax.scale_by_adam(train.beta1, train.beta2, train.epsilon),
    optax.scale_by_learning_rate(learning_rate(config)),
  )
