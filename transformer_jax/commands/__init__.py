"""The commands of `transformer-jax`. Each is a module with `add_arguments` and `run`.

The docstring of a module says what its `run` does, and is the command's help. What needs JAX is imported inside `run`,
so that --help and a wrong flag need not wait for it.
"""

from importlib import import_module
from types import ModuleType

_NAMES = (
  "train",
  "plan",
  "translate",
  "backtranslate",
  "rerank",
  "evaluate",
  "score",
  "clean",
  "prepare",
  "average",
  "export",
  "import",
  "attention",
  "report",
  "align",
  "heads",
  "draw",
  "generate",
  "classify",
  "serve",
  "fidelity",
  "paper",
)
_KEYWORDS = {"import": "import_"}  # what cannot be the name of a module

COMMANDS: dict[str, ModuleType] = {
  name: import_module(f"transformer_jax.commands.{_KEYWORDS.get(name, name)}") for name in _NAMES
}
