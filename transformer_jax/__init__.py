"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017) in JAX and Flax.

from transformer_jax import Translator
"""

import sys

# `python -m transformer_jax` looks for modules in the folder that it is called in before all others: a stranger's file
# `json.py` there would be run. (While Python looks for the package, -m stands in the place of the program's name.)
if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
  del sys.path[0]

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from transformer_jax.decoding.translator import Translator

__all__ = ["Translator"]


def __getattr__(name: str) -> Any:
  # Looked up when asked for: JAX takes a second to import, and a mistaken command line need not wait for it.
  if name == "Translator":
    from transformer_jax.decoding.translator import Translator

    return Translator
  if name == "__version__":
    from importlib import metadata

    return metadata.version("transformer_jax")
  raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
