"""§5, one update from a batch, by the real step of the real task: its loss, its gradients, its dropout."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax.config import Config, DataConfig, TrainConfig
from transformer_jax.data.batches import Batch
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.params import Params, by_name
from transformer_jax.model.transformer import Transformer
from transformer_jax.paper import formulas
from transformer_jax.paper.examples import float64, random_params, row_logits, watched_dropouts
from transformer_jax.paper.statement import Statements, require, require_close, require_equal
from transformer_jax.paper.tiny import ROW_LENGTH, SHALLOW, SOURCE, TARGET, TINY, row
from transformer_jax.runtime import devices
from transformer_jax.tasks import translation
from transformer_jax.training import optimizer, step

STATEMENTS = Statements()

# Of different lengths, so that a mean of means is another one.
_PAIRS = [(SOURCE, TARGET), ([5, 3], [9, 3]), (TARGET[2:], SOURCE[3:]), ([8, 27, 3], [30, 3])]
_RATE = 0.3
_CHANGE = 1e-7  # so small that hardly any ReLU changes sides


def _config(model: ModelConfig, rows: int, accumulation: int = 1) -> Config:
  train = TrainConfig(batch_tokens=rows * ROW_LENGTH, warmup_steps=3, accumulation=accumulation)
  return Config(data=DataConfig(row_length=ROW_LENGTH), model=model, train=train)


def _state(config: Config, params: Params, number: int = 0) -> step.TrainState:
  return step.TrainState(jnp.int32(number), params, optimizer.optimizer(config).init(params))


def _loss(params: Params, pairs: Sequence[tuple[list[int], list[int]]]) -> float:
  """§5.4 in NumPy and float64: the mean over the target tokens of all pairs."""
  sums = [formulas.cross_entropy(formulas.transformer(params, *pair), pair[1], 0.1) for pair in pairs]
  return sum(sums) / sum(len(target) for _, target in pairs)


def _slope(params: Params, number: int, direction: np.ndarray) -> float:
  """The derivative of `_loss` where one array of the parameters is changed in a direction."""
  leaves, structure = jax.tree.flatten(params)
  losses = [
    _loss(structure.unflatten([*leaves[:number], leaves[number] + change, *leaves[number + 1 :]]), _PAIRS)
    for change in (_CHANGE * direction, -_CHANGE * direction)
  ]
  return (losses[0] - losses[1]) / (2 * _CHANGE)


@STATEMENTS.add(
  "5.2",
  "(A step is one update by the mean loss of all tokens of its batch; the devices share the batch.)",
  code="training/step.py: train_step",
  test="tests/training/test_step.py::test_devices_and_accumulation_change_nothing",
)
def one_update():
  config, params = _config(SHALLOW, rows=4, accumulation=2), random_params(SHALLOW)
  # Two devices of two micro-batches, without needing two devices; each row is mostly padding.
  update = jax.jit(devices.op_by_op(functools.partial(step.train_step, config, translation.TASK)))
  batch = Batch(np.stack([row(pair) for pair in _PAIRS]).reshape(2, 2, 4, -1), np.arange(4).reshape(2, 2))
  after, metrics = jax.device_get(update(_state(config, params), batch))
  sums, exact = metrics["sums"], float64(params)
  require_equal(float(sums.tokens), float(sum(len(target) for _, target in _PAIRS)), "tokens of the batch")
  require_close(sums.loss / sums.tokens, _loss(exact, _PAIRS), "the loss of the batch")

  gradients = jax.tree.map(lambda moment: moment / (1 - 0.9), float64(after.optimizer[0].mu))
  generator = np.random.default_rng(0)
  for number, (name, gradient) in enumerate(by_name(gradients).items()):
    direction = generator.standard_normal(gradient.shape)
    found, scale = float(np.sum(gradient * direction)), float(np.linalg.norm(gradient))
    slope = _slope(exact, number, direction)
    require_close(found, slope, f"the slope of the loss by {name}", 1e-6 + 1e-4 * scale)

  def updated(old: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    rate = formulas.learning_rate(1, SHALLOW.d_model, 3)
    return next(formulas.adam(old, gradient[None], [rate], 0.9, 0.98, 1e-9))

  expected = jax.tree.map(updated, exact, gradients)
  for found, wanted in zip(jax.tree.leaves(after.params), jax.tree.leaves(expected), strict=True):
    require_close(found, wanted, "the parameters after an update", 1e-5)


@STATEMENTS.add(
  "5.4",
  "(Each dropout of the model draws a mask of its own.)",
  code="model/dropout.py: Dropout",
  test="tests/model/test_transformer.py::test_dropout_is_where_the_paper_says_and_different_everywhere",
)
def dropouts_differ():
  model, params = Transformer(dataclasses.replace(TINY, dropout=_RATE)), random_params(TINY)

  @jax.jit
  def train(params: Any, row: jax.Array) -> Any:
    with watched_dropouts() as seen:
      hidden = translation.decoder_output(model, params, row, jax.random.key(0, impl="threefry2x32"))
    return model.apply({"params": params}, hidden, method="logits"), [after != 0 for _, _, after in seen]

  logits, kept = jax.device_get(train(params, row((SOURCE, TARGET))))
  require_equal(len(kept), 2 + 2 * 2 + 2 * 3, "dropouts of two layers on either side")
  # Where there are tokens on both sides: attention gives nothing at padding.
  for number, mask in enumerate(masks := [mask[: len(SOURCE)] for mask in kept]):
    share = float(np.mean(mask))
    require(abs(share - (1 - _RATE)) < 0.15, f"dropout {number + 1} keeps {share:.0%}, not {1 - _RATE:.0%}")
    equal = [other + 1 for other in range(number) if np.mean(mask == masks[other]) > 0.9]
    require(not equal, f"dropout {number + 1} zeroes the same as dropout {(equal or [0])[0]}")
  in_order = iter(kept)
  expected = formulas.transformer(float64(params), SOURCE, TARGET, lambda x: x * next(in_order)[: len(x)] / (1 - _RATE))
  require_close(logits[: len(TARGET)], expected, "the logits of training with what is kept", 1e-3)


@STATEMENTS.add(
  "5.4",
  "Dropout is on in training (with new masks for each packed row and each step) and off elsewhere.",
  code="training/step.py: train_step",
  test="tests/training/test_step.py::test_dropout_is_keyed_by_a_row_s_place_in_the_whole_batch",
)
def dropout_in_training():
  model, params = dataclasses.replace(SHALLOW, dropout=_RATE), random_params(SHALLOW)
  config = _config(model, rows=2)
  rows = np.stack([row((SOURCE, TARGET))] * 2)

  @jax.jit
  @devices.op_by_op
  def loss_of(state: step.TrainState, batch: Batch) -> jax.Array:
    sums = step.train_step(config, translation.TASK, state, batch)[1]["sums"]
    return sums.loss / sums.tokens

  def loss(number: int, indices: list[int]) -> float:
    return float(loss_of(_state(config, params, number), Batch(rows[None], np.array([indices]))))

  without = _loss(float64(params), [(SOURCE, TARGET)])
  one, another, later = loss(0, [0, 0]), loss(0, [1, 1]), loss(1, [0, 0])
  require(abs(one - without) > 1e-3, "the loss of an update is that without dropout")
  require(abs(one - another) > 1e-3, "two rows of a batch have the same dropout")
  require(abs(one - later) > 1e-3, "two updates have the same dropout")
  measured = row_logits(model, params)(rows[0])[: len(TARGET)]
  require_close(measured, formulas.transformer(float64(params), SOURCE, TARGET), "logits outside training")
