"""Adam with beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9 (§5.3), AdamW, and the moving average of the parameters."""

import jax
import jax.numpy as jnp
import optax

from transformer_jax.config import Config, Optimizer, Schedule
from transformer_jax.model.params import map_by_name
from transformer_jax.training import pretrained_embeddings
from transformer_jax.training.schedule import after_warmup, inverse_square_root


def learning_rate(config: Config) -> optax.Schedule:
  """The learning rate schedule of the config."""
  train, d_model = config.train, config.model.d_model
  if train.schedule is Schedule.INVERSE_SQUARE_ROOT:
    return inverse_square_root(d_model, train.warmup_steps, train.peak_learning_rate)
  peak = train.peak_learning_rate
  return after_warmup(
    train.schedule, (d_model * train.warmup_steps) ** -0.5 if peak is None else peak, train.warmup_steps, train.steps
  )


def optimizer(config: Config) -> optax.GradientTransformation:
  """The optimizer of the config, as an optax chain; it gets the gradients of the whole batch, on all devices.

  With g the gradients, n the norm of all of them together, Adam's update u, the learning rate r and parameters p:

    g <- g min(1, clip_norm / n)          if `clip_norm` is not 0
    p <- p - r u                          Adam
    p <- p - r (u + weight_decay p)       AdamW (Loshchilov and Hutter 2019, as in optax and torch)

  Biases do not decay, nor does what has one axis, such as the gains of LayerNorm. With `config.train.freeze_embeddings`
  the gradients of the tables of embeddings become 0 before Adam sees them. So Adam's moments of a table stay 0, and the
  table stays as it is to the last bit.
  """
  train = config.train
  frozen = [optax.masked(optax.set_to_zero(), pretrained_embeddings.tables)] if train.freeze_embeddings else []
  clipped = [optax.clip_by_global_norm(train.clip_norm)] if train.clip_norm else []
  decayed = [optax.add_decayed_weights(train.weight_decay, _decays)] if train.optimizer is Optimizer.ADAMW else []
  return optax.chain(
    *frozen,
    *clipped,
    optax.scale_by_adam(train.beta1, train.beta2, train.epsilon),
    *decayed,
    *(frozen if decayed else []),  # frozen tables do not decay either
    optax.scale_by_learning_rate(learning_rate(config)),
  )


def gradient_norm(config: Config, gradients: optax.Params) -> jax.Array:
  """The norm n of all gradients together, as `clip_norm` bounds it: those of frozen tables count as 0."""
  if config.train.freeze_embeddings:
    frozen = pretrained_embeddings.tables(gradients)
    gradients = jax.tree.map(lambda each, is_frozen: jnp.zeros_like(each) if is_frozen else each, gradients, frozen)
  return optax.tree.norm(gradients)


def _decays(params: optax.Params) -> optax.Params:
  """The tree of `params` with True for each parameter that decays.

  The bias of a projection to heads has two axes, `[heads, d_k]`, so the number of axes is not enough.
  """
  return map_by_name(lambda name, leaf: leaf.ndim > 1 and name.rpartition("/")[2] != "bias", params)


def updates_made(state: optax.OptState) -> jax.Array:
  """The number of times that the optimizer has changed the parameters; it determines the next learning rate."""
  assert isinstance(state, tuple)
  schedule = state[-1]  # the state of the chain's last transformation
  assert isinstance(schedule, optax.ScaleByScheduleState)
  return jnp.asarray(schedule.count)


def moving_average(decay: float, average: optax.Params, params: optax.Params, step: jax.Array) -> optax.Params:
  """The exponential moving average of the parameters p after update t.

      a_t = d_t a_(t-1) + (1 - d_t) p_t      d_t = min(decay, (1 + t) / (10 + t))      a_0 = p_0

  The first updates decay faster, so that the random p_0 is soon forgotten and no
  bias is left to correct; TensorFlow's `ExponentialMovingAverage` does the same.

  Args:
    decay: `config.train.ema_decay`.
    average: a_(t-1).
    params: p_t.
    step: t, from 1.
  """
  # This is 1 - d_t. Python computes 1 - decay, as float32 would lose most digits of it.
  rate = jnp.maximum(1 - decay, 9 / (10 + step))
  # In this form the average of equal parameters is exactly these: a frozen table is its own average.
  return jax.tree.map(lambda a, p: a + rate * (p - a), average, params)
