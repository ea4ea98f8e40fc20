"""The model families: which dataclass, which Flax module and which task belong to a name.

A config says by the class of `config.model` of which family it is; the file `config.json` says it by the name.

Another family is added without a change here. A package that has in its `pyproject.toml`

    [project.entry-points."transformer_jax.families"]
    my-model = "my_package:FAMILY"

where FAMILY is a `Family`, is found by every command once it is installed. `register` does the same for one process.
"""

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from transformer_jax.model.config import AnyModelConfig
from transformer_jax.runtime import plugins
from transformer_jax.runtime.errors import InputError

if TYPE_CHECKING:  # reading a config must not wait for JAX
  import flax.linen as nn

Kind = TypeVar("Kind")

GROUP = "transformer_jax.families"  # of entry points


class Family(NamedTuple):
  """Where a model's parts are, as `module:name`, imported only when asked for.

  A model that translates is a Flax module with the methods of
  `model.transformer.Transformer`, from `__call__` to `decode_step`; its cache is
  a dataclass with a field `memory`, and beam search looks at no other part of it.

  Attributes:
    config: the dataclass of its sizes, an `AnyModelConfig`.
    module: the Flax module, made of that dataclass.
    task: its `training.task.Task`.
    command: the command that uses a run of it, or what to use where there is none.
  """

  config: str
  module: str
  task: str = "transformer_jax.tasks.translation:TASK"
  command: str = "translate"


_FAMILIES = {
  "transformer": Family("transformer_jax.model.config:ModelConfig", "transformer_jax.model.transformer:Transformer"),
  "seq2seq": Family(
    "transformer_jax.recurrent.config:SequenceToSequenceConfig", "transformer_jax.recurrent.seq2seq:SequenceToSequence"
  ),
  "bahdanau": Family("transformer_jax.recurrent.config:BahdanauConfig", "transformer_jax.recurrent.bahdanau:Bahdanau"),
  "luong": Family("transformer_jax.recurrent.config:LuongConfig", "transformer_jax.recurrent.luong:Luong"),
  "gpt": Family(
    "transformer_jax.language.config:GPTConfig",
    "transformer_jax.language.gpt:GPT",
    "transformer_jax.tasks.causal:TASK",
    command="generate",
  ),
  "bert": Family(
    "transformer_jax.language.config:BERTConfig",
    "transformer_jax.language.bert:BERT",
    "transformer_jax.tasks.masked:TASK",
    command="train --config.train.init_from",
  ),
  "bert-classifier": Family(
    "transformer_jax.language.config:BERTClassifierConfig",
    "transformer_jax.language.bert:BERTClassifier",
    "transformer_jax.tasks.classification:TASK",
    command="classify",
  ),
  "elmo": Family(
    "transformer_jax.language.config:ELMoConfig",
    "transformer_jax.language.elmo:ELMo",
    "transformer_jax.tasks.bidirectional:TASK",
    command="transformer_jax.tasks.features",
  ),
}
FIRST = next(iter(_FAMILIES))  # of which are the run folders of before there were families


def register(name: str, family: Family) -> None:
  """Adds a family for this process.

  Raises:
    InputError: another family has this name.
  """
  if _FAMILIES.setdefault(name, family) != family:
    raise InputError(f"there is another model family {name!r}: choose another name")


def names() -> list[str]:
  """The names of all families: those here, those registered, and those of installed packages."""
  return [*_FAMILIES, *(name for name in plugins.names(GROUP) if name not in _FAMILIES)]


def family(name: object) -> Family:
  """The family of a name.

  Raises:
    InputError: there is none, or its package cannot be imported.
  """
  if isinstance(name, str) and name not in _FAMILIES and (found := plugins.load(GROUP, name)) is not None:
    if not isinstance(found, Family):
      raise InputError(f"the model family {name!r} of an installed package is no transformer_jax.registry.Family")
    register(name, found)
  if not isinstance(name, str) or name not in _FAMILIES:
    raise InputError(
      f"config.model.family is {name!r}, but must be one of {', '.join(names())}; "
      "a family of another package is there once the package is installed"
    )
  return _FAMILIES[name]


def name_of(model: AnyModelConfig) -> str:
  """The name of the family whose config this is.

  Raises:
    InputError: no family has such a config.
  """
  here = f"{type(model).__module__}:{type(model).__qualname__}"
  for name in names():
    if family(name).config == here:
      return name
  raise InputError(f"{here} is the config of no model family: add one with transformer_jax.registry.register")


def config_class(name: object) -> type[AnyModelConfig]:
  """The dataclass of a family's sizes.

  Raises:
    InputError: there is no such family.
  """
  place = family(name).config
  found = _named(place, type)
  if not issubclass(found, AnyModelConfig):
    raise InputError(f"the model family's {place!r} is no {AnyModelConfig.__name__}")
  return found


def module(model: AnyModelConfig) -> "nn.Module":
  """The Flax module of a model's config."""
  import flax.linen as nn

  made = _named(family(name_of(model)).module, type)(model)
  assert isinstance(made, nn.Module)
  return made


def task(model: AnyModelConfig) -> object:
  """What a model is trained for; `training.task.task_of` gives it with its type."""
  return _named(family(name_of(model)).task, object)


def require_command(model: AnyModelConfig, command: str, workdir: object) -> None:
  """Raises InputError unless a run of this model is for this command."""
  name = name_of(model)
  if (right := family(name).command) != command:
    raise InputError(f"{workdir} holds a run of a {name} model, which is for `{right}`, not for `{command}`")


def _named(place: str, kind: type[Kind]) -> Kind:
  """What `module:name` names.

  Raises:
    InputError: there is no such thing.
  """
  path, _, name = place.partition(":")
  try:
    found = getattr(import_module(path), name)
  except (ImportError, AttributeError, ValueError) as error:
    raise InputError(f"the model family's {place!r} cannot be imported: {error}") from error
  if not isinstance(found, kind):
    raise InputError(f"the model family's {place!r} is no {kind.__name__}")
  return found
