"""A tiny model whose axes all have different lengths, and parameters in which nothing is 0 or 1."""

import dataclasses
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax.config import Config
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.params import Params
from transformer_jax.paper.examples import float64 as float64
from transformer_jax.paper.examples import normal as normal
from transformer_jax.paper.examples import watched_dropouts
from transformer_jax.training.initialization import abstract_params
from transformer_jax.training.step import TrainState, abstract_state
from transformer_jax.training.task import Task

# d_model is even, so it is twice a prime.
CONFIG = ModelConfig(
  vocab_size=31, num_layers=2, d_model=22, d_ff=29, num_heads=3, d_k=5, d_v=7, max_positions=317, dropout=0.0
)
SOURCE, TARGET = 13, 17


def options(**changes: Any) -> ModelConfig:
  return dataclasses.replace(CONFIG, **changes)


def perturbed(params: Any, seed: int = 0) -> Any:
  """The parameters with noise: new biases are 0 and new scales 1, which would hide mistakes."""
  generator = np.random.default_rng(seed)
  return jax.tree.map(lambda x: x + 0.1 * generator.standard_normal(x.shape).astype(x.dtype), params)


def random_params(config: Config, task: Task, seed: int = 0) -> Params:
  """Parameters of a model, of the size of new ones; to draw them as training does would take longer to compile."""
  return _drawn(abstract_params(config, task), seed)


def random_state(config: Config, task: Task, seed: int = 0) -> TrainState:
  """A state as NumPy arrays: the parameters of `random_params`, if there is an average another one, and zeros."""
  shapes = abstract_state(config, task)
  state = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes).replace(params=_drawn(shapes.params, seed))
  return jax.device_get(state if state.average is None else state.replace(average=_drawn(shapes.params, seed + 1000)))


def module_params(module: nn.Module, *args: Any, seed: int = 0, **kwargs: Any) -> Any:
  """Random parameters of a module that is called with these arguments."""
  shapes = jax.eval_shape(lambda: module.init(jax.random.key(0), *args, **kwargs))
  return _drawn(shapes["params"], seed)


def _drawn(shapes: Any, seed: int) -> Any:
  generator = np.random.default_rng(seed)

  def drawn(path: Any, leaf: jax.ShapeDtypeStruct) -> jax.Array:
    noise = generator.standard_normal(leaf.shape)
    return jnp.asarray(1 + 0.1 * noise if path[-1].key == "scale" else 0.25 * noise, leaf.dtype)

  return jax.tree_util.tree_map_with_path(drawn, shapes)


def recorded_dropout(forward: Callable[[], object]) -> list[tuple[jax.Array, jax.Array]]:
  """What goes into each dropout that is active in a forward pass, and what comes out of it."""
  with watched_dropouts() as seen:
    forward()
  return [(x, y) for _, x, y in seen]


def dropout_shapes(forward: Callable[[], object]) -> list[tuple[int, ...]]:
  """The shape of each active dropout, in their order; the pass is traced and not computed."""
  return [x.shape for x, _ in recorded_dropout(lambda: jax.eval_shape(forward))]
