"""The commands of `transformer-jax`: a module each, with DESCRIPTION, `add_arguments` and `run`.

What needs JAX is imported inside `run`: neither --help nor a mistaken flag should wait for it.
"""

from types import ModuleType

from transformer_jax.commands import average, classify, evaluate, fidelity, generate, plan, score, train, translate

COMMANDS: dict[str, ModuleType] = {
  "train": train,
  "plan": plan,
  "translate": translate,
  "evaluate": evaluate,
  "score": score,
  "average": average,
  "generate": generate,
  "classify": classify,
  "fidelity": fidelity,
}
