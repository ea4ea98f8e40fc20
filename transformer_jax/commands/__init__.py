"""The commands of `transformer-jax`. Each is a module with DESCRIPTION, `add_arguments` and `run`.

The docstring of a module says what its `run` does. What needs JAX is imported inside `run`, so that --help and a wrong
flag need not wait for it.
"""

from types import ModuleType

from transformer_jax.commands import (
  align,
  attention,
  average,
  backtranslate,
  classify,
  clean,
  draw,
  evaluate,
  export,
  fidelity,
  generate,
  heads,
  import_,
  paper,
  plan,
  prepare,
  report,
  rerank,
  score,
  serve,
  train,
  translate,
)

COMMANDS: dict[str, ModuleType] = {
  "train": train,
  "plan": plan,
  "translate": translate,
  "backtranslate": backtranslate,
  "rerank": rerank,
  "evaluate": evaluate,
  "score": score,
  "clean": clean,
  "prepare": prepare,
  "average": average,
  "export": export,
  "import": import_,
  "attention": attention,
  "report": report,
  "align": align,
  "heads": heads,
  "draw": draw,
  "generate": generate,
  "classify": classify,
  "serve": serve,
  "fidelity": fidelity,
  "paper": paper,
}
