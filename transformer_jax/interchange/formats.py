"""The formats by name, for the command line, which imports no module of a format before it is asked for."""

from typing import NamedTuple


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


class Format(NamedTuple):
  """A format.

  Attributes:
    module: its module, with `require(config)`, which raises InputError if the format cannot express the model, and
      `write(folder, run, model)`, which fills an empty folder and also takes the value of the option.
    option: its option, or None.
  """

  module: str
  option: Option | None = None


FORMATS = {
  "safetensors": Format("transformer_jax.interchange.safetensors", Option("dtype", ("float32", "bfloat16"))),
  "ctranslate2": Format(
    "transformer_jax.interchange.ctranslate2",
    Option("quantization", ("float32", "int8", "int8_float32", "float16", "bfloat16")),
  ),
  "marian-hf": Format("transformer_jax.interchange.marian_hf"),
  "stablehlo": Format(
    "transformer_jax.interchange.stablehlo", Option("parameters", ("inside", "beside"), "where the parameters are")
  ),
  "bert": Format("transformer_jax.interchange.bert"),
  "gpt2": Format("transformer_jax.interchange.gpt2"),
}

# The module of each format that `import` reads, with `read(folder)`, which gives an `imported.Imported`.
IMPORTS = {
  "marian-hf": "transformer_jax.interchange.marian_hf_import",
  "bert": "transformer_jax.interchange.bert",
  "gpt2": "transformer_jax.interchange.gpt2",
}
