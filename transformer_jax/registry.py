"""The model families: the dataclass, the Flax module and the task that belong to each name.

The class of `config.model` determines the family of a config; the file `config.json` has the family's name.

Another family needs no change here. If an installed package has in its `pyproject.toml`

    [project.entry-points."transformer_jax.families"]
    my-model = "my_package:FAMILY"

where FAMILY is a `Family`, every command finds the family. `register` adds a family for one process.
"""

from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from transformer_jax.model.config import AnyModelConfig
from transformer_jax.runtime import plugins
from transformer_jax.runtime.errors import InputError

if TYPE_CHECKING:  # reading a config must not wait for JAX
  import flax.linen as nn

Kind = TypeVar("Kind")

GROUP = "transformer_jax.families"  # the group of entry points


class Family(NamedTuple):
  """The places of a model's parts, as `module:name`; each is imported only when it is used.

  A model that translates is a Flax module with the methods of
  `model.transformer.Transformer`, from `__call__` to `decode_step`. Its cache is
  a dataclass with a field `memory`; beam search uses no other field. Training
  computes the logits from `output_table` and, if the module has it,
  `output_bias`: they must be those of the method `logits`, which decoding calls.

  Attributes:
    config: the dataclass of the model's sizes, an `AnyModelConfig`.
    module: the Flax module; the dataclass is its only argument, and its field `config`.
    task: the model's `training.task.Task`.
    command: the command that uses a run of the model, or what to use if there is none.
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
FIRST = next(iter(_FAMILIES))  # the family of run folders written before there were families


def register(name: str, family: Family) -> None:
  """Adds a family for this process.

  Raises:
    InputError: another family has this name, or this config, by whose class the family of a model is known.
  """
  for other, known in _FAMILIES.items():
    if other != name and known.config == family.config:
      raise InputError(
        f"the model family {name!r} has the config of the family {other!r}, {family.config}: derive a dataclass from it"
      )
  if _FAMILIES.setdefault(name, family) != family:
    raise InputError(f"there is another model family {name!r}: choose another name")


def names() -> Iterator[str]:
  """Yields the names of all families; last those of installed packages, because looking through them takes a while."""
  yield from tuple(_FAMILIES)
  yield from (name for name in plugins.names(GROUP) if name not in _FAMILIES)


def family(name: object) -> Family:
  """The family with this name.

  Raises:
    InputError: there is no such family, or its package cannot be imported.
  """
  if isinstance(name, str) and name not in _FAMILIES and (found := plugins.load(GROUP, name)) is not None:
    if not isinstance(found, Family):
      raise InputError(f"the model family {name!r} of an installed package is no transformer_jax.registry.Family")
    register(name, found)
  if not isinstance(name, str) or name not in _FAMILIES:
    raise InputError(
      f"config.model.family is {name!r:.200}, but must be one of {', '.join(names())}; "
      "a family of another package is there once the package is installed"
    )
  return _FAMILIES[name]


def name_of(model: AnyModelConfig) -> str:
  """The name of the family that a model's config belongs to.

  Raises:
    InputError: no family has such a config.
  """
  here = f"{type(model).__module__}:{type(model).__qualname__}"
  for name in names():
    if family(name).config == here:
      return name
  for name in names():  # a family may name another module that imports the class
    with suppress(InputError):  # the mistake of another family
      if sizes(name) is type(model):
        return name
  raise InputError(f"{here} is the config of no model family: install the package that has its family (docs/extend.md)")


def sizes(name: object) -> type[AnyModelConfig]:
  """The dataclass of a family's sizes; unlike those of `config_class`, its configs may lack a hash.

  Raises:
    InputError: there is no such family.
  """
  place = family(name).config
  found = _named(place, type)
  if not issubclass(found, AnyModelConfig):
    raise InputError(f"the model family's {place!r} is no {AnyModelConfig.__name__}")
  return found


def config_class(name: object) -> type[AnyModelConfig]:
  """The dataclass of a family's sizes.

  Raises:
    InputError: there is no such family, or its configs have no hash.
  """
  found = sizes(name)
  if found.__hash__ is None:
    raise InputError(f"the model family's {family(name).config!r} has no hash: write @dataclass(unsafe_hash=True)")
  return found


def family_of(model: AnyModelConfig) -> Family:
  """The family that a model's config belongs to.

  Raises:
    InputError: no family has such a config.
  """
  return family(name_of(model))


def module(model: AnyModelConfig) -> "nn.Module":
  """The Flax module for a model's config.

  Raises:
    InputError: the family's module is no Flax module, or does not have the config as its field `config`.
  """
  import flax.linen as nn

  place = family_of(model).module
  made = _named(place, type)(model)
  if not isinstance(made, nn.Module):
    raise InputError(f"the model family's {place!r} is no Flax module")
  if getattr(made, "config", None) != model:
    raise InputError(f"the model family's {place!r} does not have its config as the field config: rename the field")
  return made


def task(model: AnyModelConfig, kind: type[Kind]) -> Kind:
  """The task of a model, which must be of the type `kind`; `training.task.task_of` calls this with `Task`.

  Raises:
    InputError: it is of another type.
  """
  return _named(family_of(model).task, kind)


def command_of(model: AnyModelConfig) -> str:
  """The command that uses a run of a model (`Family.command`)."""
  return family_of(model).command


def require_command(model: AnyModelConfig, command: str, workdir: object) -> None:
  """Raises InputError unless this command can use a run of this model."""
  if (right := command_of(model)) != command:
    raise InputError(f"{workdir} holds a run of the family {name_of(model)}: use it with `{right}`")


def _named(place: str, kind: type[Kind]) -> Kind:
  """The object that `module:name` names.

  Raises:
    InputError: there is no such object, or it is of another type.
  """
  path, _, name = place.partition(":")
  try:
    found = getattr(import_module(path), name)
  except (ImportError, AttributeError, ValueError) as error:
    raise InputError(f"the model family's {place!r} cannot be imported: {error}") from error
  if not isinstance(found, kind):
    raise InputError(f"the model family's {place!r} is no {kind.__name__}")
  return found
