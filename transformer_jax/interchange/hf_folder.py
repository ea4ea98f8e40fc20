"""A folder as Hugging Face transformers read and write one."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from transformer_jax.config import Config, Corpus, DataConfig, TrainConfig
from transformer_jax.interchange.foreign_folder import SAFETENSORS, ForeignFolder, Weights
from transformer_jax.interchange.settings import Settings
from transformer_jax.language.config import BlocksConfig
from transformer_jax.model.config import Activation
from transformer_jax.runtime import tensor_file
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.values import Json

ACTIVATIONS = {
  Activation.RELU: "relu",
  Activation.GELU: "gelu",
  Activation.GELU_TANH: "gelu_pytorch_tanh",
  Activation.SWISH: "silu",
}
_BY_NAME = {
  **{name: ours for ours, name in ACTIVATIONS.items()},
  **{"gelu_new": Activation.GELU_TANH, "swish": Activation.SWISH},
}

Blocks = TypeVar("Blocks", bound=BlocksConfig)


def write(
  folder: Path, arrays: Mapping[str, np.ndarray], values: Mapping[str, Mapping[str, Json]], card: bytes
) -> None:
  """Writes `model.safetensors`, the page `README.md`, and files of JSON.

  Args:
    folder: where no such files are.
    arrays: the parameters.
    values: the values of each file of JSON, by its name.
    card: the page.
  """
  tensor_file.write(folder / SAFETENSORS, arrays, {"format": "pt"})
  for name, content in values.items():
    (folder / name).write_text(json.dumps(content, indent=2) + "\n")
  (folder / "README.md").write_bytes(card)


def activation(settings: Settings, name: str, default: str) -> Activation:
  """The activation that a setting names.

  Raises:
    InputError: it is one that no model here has.
  """
  found = settings.text(name, default)
  if found not in _BY_NAME:
    raise settings.wrong(name, f"one of {', '.join(_BY_NAME)}")
  return _BY_NAME[found]


def sizes(settings: Settings, names: Mapping[str, tuple[str, int]], weights: Weights) -> dict[str, int]:
  """The sizes of a model, none of which is larger than the file of its parameters allows.

  Args:
    settings: the model's.
    names: our name -> the name there, and the default of a missing one.
    weights: the file.

  Raises:
    InputError: a size is no whole number, or too large.
  """
  layers = len(weights.shapes)  # an array without numbers can have a size of any length, and layers take time
  most = max((size for shape in weights.shapes.values() for size in shape), default=1)
  return {
    ours: settings.integer(theirs, default, least=1, most=layers if ours == "num_layers" else most)
    for ours, (theirs, default) in names.items()
  }


def sizes_there(model: BlocksConfig, names: Mapping[str, tuple[str, int]]) -> dict[str, int]:
  """The sizes of a model by their names there; `names` are those of `sizes`."""
  return {theirs: getattr(model, ours) for ours, (theirs, _) in names.items()}


def model(kind: type[Blocks], settings: Settings, **values: Any) -> Blocks:
  """The config of a model, with values from `settings`.

  Raises:
    InputError: a value is none that a model here can have; the sentence names the file of the settings.
  """
  try:
    return kind(**values)
  except InputError as error:
    raise InputError(f"{settings.path}: {error}") from error


def max_length(config: Config) -> int:
  """The most tokens that the other library should read: the positions that the rows of this run reach."""
  assert isinstance(config.model, BlocksConfig)
  return min(config.model.max_positions, config.data.row_length)


def config(model: BlocksConfig, folder: ForeignFolder) -> Config:
  """The config of a run with an imported model; its text is yet to be named."""
  longest = folder.settings("tokenizer_config.json", optional=True).value("model_max_length")
  fewer = type(longest) is int and 1 < longest < model.max_positions
  row_length = longest if fewer else model.max_positions
  data = DataConfig(corpus=Corpus.TEXT, train="", validation="", row_length=row_length)
  batch = max(TrainConfig.batch_tokens, row_length)  # a row at least
  return Config(data=data, model=model, train=TrainConfig(batch_tokens=batch))


@contextmanager
def opened(
  folder: ForeignFolder, only: Mapping[str, object], usual: Callable[[str], str | None]
) -> Iterator[tuple[Settings, Weights]]:
  """The settings of a model, and its parameters under the names that the library gives them today.

  Args:
    folder: the model's.
    only: the settings of which the model here has one value, and that value.
    usual: a function from a name in the file to the usual one; None for what is no parameter.

  Raises:
    InputError: the folder is damaged, a setting has another value, or two parameters have one usual name.
  """
  settings = folder.settings("config.json")
  for name, value in only.items():
    settings.require(name, [value])
  with folder.weights() as weights:
    yield settings, _with_usual_names(weights, usual)


def _with_usual_names(weights: Weights, usual: Callable[[str], str | None]) -> Weights:
  found: dict[str, str] = {}
  for name in weights.shapes:
    if (known := usual(name)) is not None and found.setdefault(known, name) != name:
      raise InputError(f"{weights.path} has both {name[:80]!a} and {found[known][:80]!a}, which are one: copy it again")
  return weights.under(found)
