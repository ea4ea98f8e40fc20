"""A folder as Hugging Face transformers read and write one."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transformer_jax.config import Config, Corpus, DataConfig
from transformer_jax.interchange.foreign_folder import Weights
from transformer_jax.interchange.settings import Settings
from transformer_jax.language.config import BlocksConfig
from transformer_jax.model.config import Activation
from transformer_jax.runtime import tensor_file
from transformer_jax.runtime.errors import InputError

_ACTIVATIONS = {
  **{"relu": Activation.RELU, "gelu": Activation.GELU, "silu": Activation.SWISH, "swish": Activation.SWISH},
  **dict.fromkeys(("gelu_new", "gelu_pytorch_tanh"), Activation.GELU_TANH),
}


def write(folder: Path, arrays: Mapping[str, np.ndarray], values: Mapping[str, Mapping[str, Any]], card: bytes) -> None:
  """Writes `model.safetensors`, the page `README.md`, and files of JSON.

  Args:
    folder: where no such files are.
    arrays: the parameters.
    values: the values of each file of JSON, by its name.
    card: the page.
  """
  tensor_file.write(folder / "model.safetensors", arrays, {"format": "pt"})
  for name, content in values.items():
    (folder / name).write_text(json.dumps(content, indent=2) + "\n")
  (folder / "README.md").write_bytes(card)


def activation(settings: Settings, name: str, default: str) -> Activation:
  """The activation that a setting names.

  Raises:
    InputError: it is one that no model here has.
  """
  settings.require(name, _ACTIVATIONS)
  return _ACTIVATIONS[settings.text(name, default)]


def sizes(settings: Settings, names: Mapping[str, tuple[str, int | None]], weights: Weights) -> dict[str, int]:
  """The sizes of a model, none of which is larger than the file of its parameters allows.

  Args:
    settings: the model's.
    names: for each name here the name there, and what a missing one is.
    weights: the file.

  Raises:
    InputError: a size is no whole number, or too large.
  """
  layers = len(weights.shapes)  # an array without numbers can have a size of any length, and layers take time
  most = max((size for shape in weights.shapes.values() for size in shape), default=1)
  return {
    ours: settings.whole(theirs, default, least=1, most=layers if ours == "num_layers" else most)
    for ours, (theirs, default) in names.items()
  }


def config(model: BlocksConfig) -> Config:
  """The config of a run with an imported model; its text is yet to be named."""
  data = DataConfig(corpus=Corpus.TEXT, train="", validation="", row_length=model.max_positions)
  return Config(data=data, model=model)


def with_usual_names(weights: Weights, usual: Callable[[str], str | None]) -> Weights:
  """The parameters under the names that the library gives them today.

  Args:
    weights: the file, which may be an older one, or one of a part of the model.
    usual: a function from a name to the usual one; None for what is no parameter.

  Raises:
    InputError: two parameters have one usual name.
  """
  found: dict[str, str] = {}
  for name in weights.shapes:
    if (known := usual(name)) is not None and found.setdefault(known, name) != name:
      raise InputError(f"{weights.path} has both {name[:80]!a} and {found[known][:80]!a}, which are one: copy it again")
  return weights.under(found)
