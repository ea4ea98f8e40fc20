"""The formats by name, for the command line, which imports no module of a format before it is asked for."""

from importlib import import_module
from typing import Any, NamedTuple


class Option(NamedTuple):
  """An option of a format.

  Attributes:
    name: the flag without its dashes.
    values: what it may be; the first is the default.
    what: what it chooses, for the flag's help.
  """

  name: str
  values: tuple[str, ...]
  what: str = "of the numbers"


# The formats that `export` writes, each with its option. The module of a format has `require(config)`, which raises
# InputError if the format cannot express the model, and `write(folder, run, model)`, which fills an empty folder and
# also takes the value of the option.
FORMATS = {
  "safetensors": Option("dtype", ("float32", "bfloat16")),
  "ctranslate2": Option("quantization", ("float32", "int8", "int8_float32", "float16", "bfloat16")),
  "marian-hf": None,
  "stablehlo": Option("parameters", ("inside", "beside"), "where the parameters are"),
  "bert": None,
  "gpt2": None,
}

# The formats that `import` reads, each with its module, which has `read(folder)`, a function that gives an
# `import_.Imported`.
IMPORTS = {"marian-hf": "marian_hf_import", "bert": "bert", "gpt2": "gpt2"}


def module(name: str) -> Any:
  """The module of a format that is written, or one of those that `IMPORTS` names."""
  return import_module(f"transformer_jax.interchange.{name.replace('-', '_')}")
