"""The parameters with which a run begins, and their shapes."""

from typing import TYPE_CHECKING

import jax

from transformer_jax import registry
from transformer_jax.config import Config, serialization
from transformer_jax.model.params import Params, by_name
from transformer_jax.runtime import trace_cache

if TYPE_CHECKING:  # a task imports Flax, which takes a fifth of a second
  from transformer_jax.training.task import Task


def random_key(config: Config) -> jax.Array:
  """The key from which all keys of a run are derived; `dropout` supports only this generator."""
  return jax.random.key(config.train.seed, impl="threefry2x32")


def init_params(config: Config, task: "Task") -> Params:
  """Random parameters, drawn with `config.train.seed`."""
  params_key, _ = jax.random.split(random_key(config))
  return task.init_params(config, params_key)


_SHAPES: dict[tuple[object, ...], Params] = {}


def abstract_params(config: Config, task: "Task | None" = None) -> Params:
  """The shapes and types of the parameters; do not change the tree.

  Tracing a model takes longer than reading a small checkpoint, so it is traced once for each config.

  Args:
    config: the experiment.
    task: has `init_params`; None is the task of the model's family.
  """
  text = serialization.to_json(config)
  # A notebook may define the module of a family again, under the same name.
  module = None if trace_cache.is_own(config.model) else type(registry.module(config.model))
  key = task, type(config.model), module, text
  if key not in _SHAPES:
    _SHAPES[key] = _traced_shapes(config, task, text)
  return _SHAPES[key]


def shapes_of(config: Config) -> dict[str, tuple[int, ...]]:
  """The shape of each parameter by its name; nothing of their size is made."""
  return {name: leaf.shape for name, leaf in by_name(abstract_params(config)).items()}


def _traced_shapes(config: Config, task: "Task | None", text: str) -> Params:
  """The shapes and types of the parameters of the config with this text."""

  def init() -> Params:
    from transformer_jax.training.task import task_of

    return init_params(config, task or task_of(config.model))

  module = task.init_params.__module__ if task else registry.family_of(config.model).task.partition(":")[0]
  if trace_cache.is_own(config.model) and trace_cache.is_own_module(module):
    return trace_cache.kept_shapes(init, f"{module} {text}")
  return jax.eval_shape(init)
