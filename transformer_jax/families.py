"""The models that can be trained, and what for: the one place that knows them all.

A config says by the class of `config.model` which model it is of. A model that
translates is a Flax module with the methods of `model.transformer.Transformer`,
from `__call__` to `decode_step`; its cache is a dataclass with a field `memory`,
and beam search looks at no other part of it.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from transformer_jax.config import AnyModelConfig, Config
from transformer_jax.errors import InputError

if TYPE_CHECKING:  # reading a config must not wait for JAX
  import flax.linen as nn
  import jax


class Family(NamedTuple):
  """Where a model's parts are, as `module:name`, imported only when asked for.

  Attributes:
    config: the dataclass of its sizes.
    module: the Flax module, made of that dataclass.
    task: the module that is its `Task`.
  """

  config: str
  module: str
  task: str


class Task(Protocol):
  """What a model is trained for.

  `init_params(config, key)` gives random parameters, and `batch_sums(config,
  params, rows, keys)` the loss and counts of packed rows, with a dropout key for
  each or with none.
  """

  init_params: "Callable[[Config, jax.Array], Any]"
  batch_sums: "Callable[[Config, Any, jax.Array, jax.Array | None], Any]"


_TRANSLATION = "transformer_jax.training.translation"

FAMILIES = {
  "transformer": Family(
    "transformer_jax.config:ModelConfig", "transformer_jax.model.transformer:Transformer", _TRANSLATION
  ),
  "seq2seq": Family(
    "transformer_jax.recurrent.config:SequenceToSequenceConfig",
    "transformer_jax.recurrent.seq2seq:SequenceToSequence",
    _TRANSLATION,
  ),
  "bahdanau": Family(
    "transformer_jax.recurrent.config:BahdanauConfig", "transformer_jax.recurrent.bahdanau:Bahdanau", _TRANSLATION
  ),
  "luong": Family(
    "transformer_jax.recurrent.config:LuongConfig", "transformer_jax.recurrent.luong:Luong", _TRANSLATION
  ),
}


def name_of(model: AnyModelConfig) -> str:
  """The name of the family whose config this is."""
  here = f"{type(model).__module__}:{type(model).__qualname__}"
  return next(name for name, family in FAMILIES.items() if family.config == here)


def config_class(name: object) -> type[AnyModelConfig]:
  """The dataclass of a family's sizes.

  Raises:
    InputError: there is no such family.
  """
  if not isinstance(name, str) or name not in FAMILIES:
    raise InputError(f"config.model.family is {name!r}, but must be one of {', '.join(FAMILIES)}")
  return _named(FAMILIES[name].config)


def module(model: AnyModelConfig) -> "nn.Module":
  """The Flax module of a model's config."""
  return _named(FAMILIES[name_of(model)].module)(model)


def task(model: AnyModelConfig) -> Task:
  """What a model of this config is trained for."""
  found: Any = import_module(FAMILIES[name_of(model)].task)
  return found


def _named(place: str) -> Any:
  path, name = place.split(":")
  return getattr(import_module(path), name)
