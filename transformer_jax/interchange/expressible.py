"""Refusals: a format that cannot express a model raises one sentence and writes nothing."""

import enum
from collections.abc import Mapping
from typing import NoReturn, TypeVar

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.model.config import AnyModelConfig, ModelConfig
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.trace_cache import is_own

Kind = TypeVar("Kind", bound=AnyModelConfig)

TAKES_ALL = "choose --to safetensors, which takes every model"


def transformer(config: Config, to: str, only: Mapping[str, object]) -> ModelConfig:
  """The Transformer's config, if a format can express it; the arguments are those of `of_kind`.

  Raises:
    InputError: the model is of another family, or has another value, or heads that do not fill the model's width.
  """
  model = of_kind(config, ModelConfig, to, only)
  for name, width in (("d_k", model.head_dim_k), ("d_v", model.head_dim_v)):
    if width * model.num_heads != model.d_model:
      raise InputError(
        f"config.model.{name} is {width}, but in the format {to} it is d_model / num_heads = "
        f"{model.d_model / model.num_heads:g}: {TAKES_ALL}"
      )
  return model


def of_kind(config: Config, kind: type[Kind], to: str, only: Mapping[str, object]) -> Kind:
  """The model's config, if a format can express it.

  Args:
    config: the run's.
    kind: the model's dataclass.
    to: the format.
    only: the options of the model of which the format has one value, and that value.

  Raises:
    InputError: the model is of another family, or has another value.
  """
  model = config.model
  if not isinstance(model, kind) or not is_own(model):  # a family of another package may compute something else
    refuse(config, to)
  for name, value in only.items():
    found = getattr(model, name)
    if found != value:
      found, value = (each.value if isinstance(each, enum.Enum) else each for each in (found, value))
      raise InputError(
        f"config.model.{name} is {found}, but the format {to} has only {value}: {TAKES_ALL}, or train with "
        f"--config.model.{name}={value}"
      )
  return model


def refuse(config: Config, to: str) -> NoReturn:
  """Raises InputError, as the format has no model of this family."""
  raise InputError(f"the format {to} has no {registry.name_of(config.model)} model: {TAKES_ALL}")
