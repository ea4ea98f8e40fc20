"""The models that can be trained, and what for: the one place that knows them all.

A config says by the class of `config.model` which model it is of. A model that
translates is a Flax module with the methods of `model.transformer.Transformer`,
from `__call__` to `decode_step`; its cache is a dataclass with a field `memory`,
and beam search looks at no other part of it.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from transformer_jax.config import Config
from transformer_jax.model.config import AnyModelConfig
from transformer_jax.runtime.errors import InputError

if TYPE_CHECKING:  # reading a config must not wait for JAX
  import flax.linen as nn
  import jax

  from transformer_jax.data.row_cache import PackedRows
  from transformer_jax.data.tokenizer import Tokenizer
  from transformer_jax.training.loss import Sums


class Family(NamedTuple):
  """Where a model's parts are, as `module:name`, imported only when asked for.

  Attributes:
    config: the dataclass of its sizes.
    module: the Flax module, made of that dataclass.
    task: the module that is its `Task`.
    command: the command that uses a run of it, or what to use where there is none.
  """

  config: str
  module: str
  task: str
  command: str = "translate"


class Task(Protocol):
  """What a model is trained for: a module with these names.

  Attributes:
    PARTS: arrays of a packed row, `[PARTS, row_length]`.
    UNIT: what the loss is a mean over, in the plural.
    init_params: of a config and a key: random parameters.
    batch_sums: of a config, parameters, packed rows and a key for each or none: the `Sums` of their losses.
    counts: of a config and packed rows: how many terms each of the losses beside the first has, before they are
      computed; empty where there is one loss.
    learn_tokenizer: of a config: the vocabulary of its training text.
    packed_rows: of a config, a text as `config.data.train` names one, and a tokenizer: its `PackedRows`.
    validation: of a config and a tokenizer: what measures on held-out text, as `training.validation.Validation` does.
  """

  PARTS: int
  UNIT: str
  init_params: "Callable[[Config, jax.Array], Any]"
  batch_sums: "Callable[[Config, Any, jax.Array, jax.Array | None], Sums]"
  counts: "Callable[[Config, jax.Array], dict[str, jax.Array]]"
  learn_tokenizer: "Callable[[Config], Tokenizer]"
  packed_rows: "Callable[[Config, str, Tokenizer], PackedRows]"
  validation: "Callable[[Config, Tokenizer], Any]"


_TASKS = "transformer_jax.tasks"
_TRANSLATION = f"{_TASKS}.translation"
_LANGUAGE = "transformer_jax.language"

FAMILIES = {
  "transformer": Family(
    "transformer_jax.model.config:ModelConfig", "transformer_jax.model.transformer:Transformer", _TRANSLATION
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
  "gpt": Family(f"{_LANGUAGE}.config:GPTConfig", f"{_LANGUAGE}.gpt:GPT", f"{_TASKS}.causal", command="generate"),
  "bert": Family(
    f"{_LANGUAGE}.config:BERTConfig",
    f"{_LANGUAGE}.bert:BERT",
    f"{_TASKS}.masked",
    command="train.py --config.train.init_from",
  ),
  "bert-classifier": Family(
    f"{_LANGUAGE}.config:BERTClassifierConfig",
    f"{_LANGUAGE}.bert:BERTClassifier",
    f"{_TASKS}.classification",
    command="classify",
  ),
  "elmo": Family(
    f"{_LANGUAGE}.config:ELMoConfig",
    f"{_LANGUAGE}.elmo:ELMo",
    f"{_TASKS}.bidirectional",
    command="transformer_jax.tasks.features",
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


def require_command(model: AnyModelConfig, command: str, workdir: object) -> None:
  """That a run is of a model for this command.

  Raises:
    InputError: it is for another one.
  """
  name = name_of(model)
  if (right := FAMILIES[name].command) != command:
    raise InputError(f"{workdir} holds a run of a {name} model, which is for `{right}`, not for `{command}`")


def _named(place: str) -> Any:
  path, name = place.split(":")
  return getattr(import_module(path), name)
