"""One training or validation step: pure functions of the state and a batch."""

import dataclasses
import functools
import sys
from collections.abc import Callable
from typing import TypedDict, TypeVar

import flax.struct
import jax
import jax.numpy as jnp
import optax

from transformer_jax.config import Config, serialization
from transformer_jax.data.batches import Batch
from transformer_jax.model.params import Params
from transformer_jax.runtime import devices, trace_cache
from transformer_jax.training.initialization import abstract_params, init_params, random_key
from transformer_jax.training.optimizer import gradient_norm, learning_rate, moving_average, optimizer, updates_made
from transformer_jax.training.sums import Sums, joint_loss
from transformer_jax.training.task import Task

Tree = TypeVar("Tree")  # of arrays


@flax.struct.dataclass
class TrainState:
  """The state that an update changes; with the config and the data it determines the rest of the run.

  Attributes:
    step: the number of steps so far, an int32 scalar.
    params: the model's parameters, float32.
    optimizer: the optimizer's state: Adam's moments, and the number of its updates, which sets the learning rate.
    average: the exponential moving average of `params`; None if `config.train.ema_decay` is 0.
  """

  step: jax.Array
  params: Params
  optimizer: optax.OptState
  average: Params | None = None

  @property
  def params_for_decoding(self) -> Params:
    """The moving average if the run has one, else the parameters themselves."""
    return self.params if self.average is None else self.average


class Metrics(TypedDict):
  """The metrics of one update.

  Attributes:
    sums: the sums over the batch; zeros if the update was skipped.
    skipped: whether the update changed nothing because its loss or gradients were not finite.
    gradient_norm: the norm of the gradients of the mean loss, before clipping; those of frozen tables count as 0.
    learning_rate: the learning rate of this update.
  """

  sums: Sums
  skipped: jax.Array
  gradient_norm: jax.Array
  learning_rate: jax.Array


def init_state(config: Config, task: Task) -> TrainState:
  """The state before the first update."""
  return _state_of(config, init_params(config, task))


def _state_of(config: Config, params: Params) -> TrainState:
  # The average is a copy, because the step reuses the memory of each array of the state.
  average = jax.tree.map(jnp.copy, params) if config.train.ema_decay else None
  return TrainState(jnp.zeros((), jnp.int32), params, optimizer(config).init(params), average)


def abstract_state(config: Config, task: Task) -> TrainState:
  """The shapes and types of the state."""
  return jax.eval_shape(functools.partial(_state_of, config), abstract_params(config, task))


def begin_with(state: TrainState, params: Params) -> TrainState:
  """The state before the first update, with the given parameters in place of random ones."""
  average = None if state.average is None else jax.tree.map(jnp.copy, params)
  return TrainState(state.step, params, state.optimizer, average)


def train_step(config: Config, task: Task, state: TrainState, batch: Batch[jax.Array]) -> tuple[TrainState, Metrics]:
  """One update; inside `devices.over_devices` `batch` is one device's share, elsewhere the whole batch.

  `jax.jit(functools.partial(train_step, config, task))` is an update on one device.

  Dropout keys derive from the seed, the step and the row's index in the whole
  batch. Gradients are summed over all tokens and divided once. So the result is
  the same on any number of devices and for any accumulation. A batch whose loss
  or gradients are not finite changes only the step number.
  """
  step_key = jax.random.fold_in(jax.random.split(random_key(config))[1], state.step)
  counts = devices.sum_over_devices(task.counts(config, batch.rows))

  def loss(params: Params, batch: Batch[jax.Array]) -> tuple[jax.Array, Sums]:
    keys = jax.vmap(lambda index: jax.random.fold_in(step_key, index))(batch.indices)
    rows = task.chosen_rows(config, jax.lax.stop_gradient(params), batch.rows, keys, state.step)
    sums = task.batch_sums(config, params, rows, keys)
    return joint_loss(sums, counts), sums

  def of_micro_batch(batch: Batch[jax.Array]) -> tuple[Params, Sums]:
    return jax.grad(loss, has_aux=True)(state.params, batch)

  gradients, sums = devices.sum_over_devices(_accumulate(of_micro_batch, batch, config.train.accumulation))
  gradients = jax.tree.map(lambda g: g / jnp.maximum(sums.tokens, 1), gradients)
  updates, optimizer_state = optimizer(config).update(gradients, state.optimizer, state.params)
  norm = gradient_norm(config, gradients)
  params, step, average = optax.apply_updates(state.params, updates), state.step + 1, state.average
  if average is not None:
    average = moving_average(config.train.ema_decay, average, params, step)
  # With `debug`, JAX looks for NaN in what a step returns, so NaN must not be replaced by 0 here.
  finite = jnp.isfinite(sums.loss) & jnp.isfinite(norm) | config.debug
  metrics: Metrics = {
    "sums": jax.tree.map(lambda x: jnp.where(finite, x, 0), sums),
    "skipped": ~finite,
    "gradient_norm": norm,
    "learning_rate": jnp.asarray(learning_rate(config)(updates_made(state.optimizer))),
  }
  updated = TrainState(step, params, optimizer_state, average)
  unchanged = TrainState(step, state.params, state.optimizer, state.average)
  return jax.tree.map(functools.partial(jnp.where, finite), updated, unchanged), metrics


def update_on_devices(config: Config, task: Task) -> Callable[[TrainState, Batch], tuple[TrainState, Metrics]]:
  """`train_step` on all devices: (state, batch split by `devices.shard`) -> (state, metrics).

  The result reuses the state's memory. Tracing takes seconds. So on one CPU the trace is kept for the next start,
  unless code from outside the package is in it.
  """
  function = functools.partial(train_step, config, task)
  if config.debug:  # JAX checks the results of compiled functions for NaN, but could not name the operation of one
    return devices.op_by_op(function)
  function = devices.over_devices(function, out_axes=(None, None), donate_state=True)
  own = trace_cache.is_own(config.model, *(part for part in vars(task).values() if callable(part)))
  if not (own and devices.on_cpu()):  # the attention of cuDNN cannot be exported
    return function
  train = config.train if config.train.ends_at_last_step else dataclasses.replace(config.train, steps=sys.maxsize)
  key = f"{task.batch_sums.__module__} {serialization.to_json(dataclasses.replace(config, train=train))}"
  return trace_cache.kept(function, key, functools.partial(_structure, config, task), donate_state=True)


def further_losses(config: Config, task: Task) -> list[str]:
  """The names of the task's losses besides the first."""
  rows = jax.ShapeDtypeStruct((1, task.parts, config.data.row_length), jnp.uint16)
  return [name for name in jax.eval_shape(lambda rows: task.counts(config, rows), rows) if name != "tokens"]


def _structure(config: Config, task: Task, state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
  """A tree with the structure of `train_step`'s result, whose leaves mean nothing."""
  zero = jnp.zeros(())
  others = {name: Sums(zero, zero, zero, zero) for name in further_losses(config, task)}
  sums = Sums(zero, zero, zero, zero, others)
  return state, {"sums": sums, "skipped": zero, "gradient_norm": zero, "learning_rate": zero}


def eval_step(config: Config, task: Task, params: Params, batch: Batch[jax.Array]) -> Sums:
  """The loss and counts of a batch without dropout, summed as in `train_step`."""
  return devices.sum_over_devices(task.batch_sums(config, params, batch.rows, None))


def _accumulate(function: Callable[[Batch[jax.Array]], Tree], batch: Batch[jax.Array], parts: int) -> Tree:
  """The sum of `function` over `parts` equal parts of the batch, computed one after the other."""
  if parts == 1:
    return function(batch)
  micro_batches = jax.tree.map(lambda x: x.reshape(parts, -1, *x.shape[1:]), batch)
  shapes = jax.eval_shape(function, jax.tree.map(lambda x: x[0], micro_batches))
  zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)

  def add(total: Tree, micro_batch: Batch[jax.Array]) -> tuple[Tree, None]:
    return jax.tree.map(jnp.add, total, function(micro_batch)), None

  return jax.lax.scan(add, zeros, micro_batches)[0]
