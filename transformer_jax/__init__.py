"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017) in JAX and Flax.

What a program needs:

    from transformer_jax import Translator, runs, train
    from transformer_jax.config import flags

    train(flags.read_config("numbers", {}), "runs/numbers")             # as `transformer-jax train`
    Translator.load("runs/numbers").translate(["forty-two"])            # as `transformer-jax translate`
    runs.open("runs/numbers").metrics                                   # what training logged

`Transformer` is the model as a Flax module. All else is in the packages that ARCHITECTURE.md lists.
"""

import sys

# `python -m transformer_jax` looks for modules in the folder that it is called in before all others: a stranger's file
# `json.py` there would be run. (While Python looks for the package, -m stands in the place of the program's name.)
# It stands there, too, for a program whose package imports this one, and that program needs its folder.
if (
  sys.argv[:1] == ["-m"]
  and not sys.flags.safe_path
  and any(argument.removeprefix("-m").partition(".")[0] == __name__ for argument in sys.orig_argv[1:])
):
  del sys.path[0]

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from transformer_jax import runs
  from transformer_jax.config import Config
  from transformer_jax.decoding.translator import Translator
  from transformer_jax.model.transformer import Transformer
  from transformer_jax.trainer.loop import train

__all__ = ["Config", "Transformer", "Translator", "runs", "train"]

# Imported when asked for: JAX takes a second to import, and a mistaken command line need not wait for it.
_PLACES = {
  "Config": "transformer_jax.config",
  "Transformer": "transformer_jax.model.transformer",
  "Translator": "transformer_jax.decoding.translator",
  "train": "transformer_jax.trainer.loop",
}


def __getattr__(name: str) -> Any:
  if name in _PLACES:
    return getattr(import_module(_PLACES[name]), name)
  if name == "runs":
    return import_module("transformer_jax.runs")
  if name == "__version__":
    metadata = import_module("importlib.metadata")
    try:
      return metadata.version("transformer_jax")
    except metadata.PackageNotFoundError as error:  # a checkout that is not installed
      raise AttributeError(f"module {__name__!r} has no {name}: it is not installed") from error
  raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
  return [*globals(), *__all__]
