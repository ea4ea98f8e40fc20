"""The parameters with which a run begins, and their shapes."""

import jax

from transformer_jax.config import Config, serialization
from transformer_jax.model.params import Params
from transformer_jax.runtime import trace_cache
from transformer_jax.training.task import Task


def random_key(config: Config) -> jax.Array:
  """The key from which all keys of a run are derived; `dropout` supports only this generator."""
  return jax.random.key(config.train.seed, impl="threefry2x32")


def init_params(config: Config, task: Task) -> Params:
  """Random parameters, drawn with `config.train.seed`."""
  params_key, _ = jax.random.split(random_key(config))
  return task.init_params(config, params_key)


_SHAPES: dict[tuple[Task, type, str], Params] = {}


def abstract_params(config: Config, task: Task) -> Params:
  """The shapes and types of the parameters; do not change the tree.

  Tracing a model takes longer than reading a small checkpoint, so it is traced once for each config.
  """
  text = serialization.to_json(config)
  key = task, type(config.model), text
  if key not in _SHAPES:
    _SHAPES[key] = _traced_shapes(config, task, text)
  return _SHAPES[key]


def _traced_shapes(config: Config, task: Task, text: str) -> Params:
  """The shapes and types of the parameters of the config with this text."""

  def init() -> Params:
    return init_params(config, task)

  if trace_cache.is_own(config.model, task.init_params):
    return trace_cache.kept_shapes(init, f"{task.init_params.__module__} {text}")
  return jax.eval_shape(init)
