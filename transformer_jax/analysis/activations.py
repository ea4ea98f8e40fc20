"""The memory that a backward pass needs of its forward pass, from the traced function.

The compiler decides what it keeps. These rules come from what XLA allocates for training steps on CPUs
(`benchmarks/plan_memory.py`). They are meant to be just above that, never below.
"""

from typing import Any

import numpy as np
from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var

Atom = Var | Literal

_MATMULS = ("dot_general", "shared_matmul")
_SAME_VALUES = ("reshape", "broadcast_in_dim", "squeeze", "expand_dims", "transpose")
_CALLS = ("jit", "pjit")
_MARGIN = 1.1  # some values are kept twice, such as in two layouts


def kept_bytes(jaxpr: Jaxpr) -> int:
  """The bytes of the outputs of a function that returns all that the backward pass needs.

  Inputs and constants take nothing. An array and its reshaped, transposed or broadcast form take the memory of the
  smallest. A bfloat16 operand of a matmul takes four bytes an element, because CPUs convert it to float32. The result
  of `exp` counts twice, because the softmax's denominator is kept in the same shape.
  """
  producers = _producers(jaxpr)
  origins = {_origin(producers, var) for var in jaxpr.outvars}
  kept = {var for var in origins if var is not None} - set(jaxpr.invars) - set(jaxpr.constvars)
  matmuls = [equation for equation in jaxpr.eqns if equation.primitive.name in _MATMULS]
  operands = {_origin(producers, var) for equation in matmuls for var in equation.invars}

  def size(var: Var) -> int:
    array: Any = var.aval
    width = max(array.dtype.itemsize, np.float32().itemsize if var in operands else 0)
    times = 2 if var in producers and producers[var].primitive.name == "exp" else 1
    return times * width * array.size

  return round(_MARGIN * sum(map(size, kept)))


def _producers(jaxpr: Jaxpr) -> dict[Var, JaxprEqn]:
  return {var: equation for equation in jaxpr.eqns for var in equation.outvars}


def _origin(producers: dict[Var, JaxprEqn], var: Atom) -> Var | None:
  """The variable whose values `var` has in another shape; None for a constant."""
  while not isinstance(var, Literal) and var in producers:
    before = _before(producers[var], var)
    if before is var:
      return var
    var = before
  return None if isinstance(var, Literal) else var


def _before(equation: JaxprEqn, var: Var) -> Atom:
  """The operand whose values the result `var` has, `var` itself if there is none, or a constant."""
  name = equation.primitive.name
  if name in _SAME_VALUES:
    return equation.invars[0]
  if name not in _CALLS:
    return var
  inner = equation.params["jaxpr"].jaxpr
  result = inner.outvars[equation.outvars.index(var)]
  origin = _origin(_producers(inner), result)
  if origin is None or origin in inner.constvars:
    return Literal(0, var.aval)
  return equation.invars[inner.invars.index(origin)] if origin in inner.invars else var
