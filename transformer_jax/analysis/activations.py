"""The memory that a backward pass needs of its forward pass, from the traced function.

The compiler decides what it keeps. These rules come from what XLA allocates for training steps on CPUs and on an H200
(`benchmarks/plan_memory.py`). They are meant to be just above that, never below.
"""

from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var

from transformer_jax.analysis.fusion import COMPARISONS, SAME_VALUES, Atom, computed_again

_MATMULS = ("dot_general", "shared_matmul")
_MARGIN = 1.1  # on a CPU, where some values are kept twice, such as in two layouts
_SCANNED = 1.5  # on a CPU the gradients of all that scans read are there at once, and some in two layouts; measured


def kept_bytes(jaxpr: Jaxpr, *, cpu: bool) -> int:
  """The bytes of the outputs of a function that returns all that the backward pass needs.

  Inputs and constants take nothing. An array and its reshaped, transposed or broadcast form take the memory of the
  smallest.

  On a CPU a bfloat16 operand of a matmul takes four bytes an element, because CPUs convert it to float32. The result
  of `exp` counts twice, because the softmax's denominator is kept in the same shape. A scan's backward pass writes the
  gradients of all that the scan reads, which come on top.

  On an accelerator XLA fuses operations, so that it computes an array again that is an elementwise function of others
  which it keeps. Only the operands of matmuls are stored in any case. For x > 0, as in the gradient of ReLU, x is kept.
  """
  producers = _producers(jaxpr)
  matmuls = [equation for equation in jaxpr.eqns if equation.primitive.name in _MATMULS]
  operands = {_origin(producers, var) for equation in matmuls for var in equation.invars}
  given = {*jaxpr.invars, *jaxpr.constvars}
  if cpu:
    kept = _origins(producers, jaxpr.outvars) - given
    of_scans = sum(
      _bytes(var) for equation in jaxpr.eqns if equation.primitive.name == "scan" for var in _read(equation)
    )
    return round(_MARGIN * sum(_bytes_on_cpu(producers, var, var in operands) for var in kept) + _SCANNED * of_scans)
  outputs = _origins(producers, jaxpr.outvars)
  kept = {var if var in operands else _argument(producers, var) for var in outputs} - given
  stored = kept - (computed_again(jaxpr, kept | given) - operands)
  return sum(_bytes(var) for var in stored)


def _read(scan: JaxprEqn) -> list[Var]:
  """The arrays of which a scan reads a part in each step, and that have a gradient."""
  arrays = scan.invars[scan.params["num_consts"] + scan.params["num_carry"] :]
  return [var for var in arrays if isinstance(var, Var) and jnp.issubdtype(_array(var).dtype, jnp.floating)]


def _bytes_on_cpu(producers: dict[Var, JaxprEqn], var: Var, is_operand: bool) -> int:
  array = _array(var)
  width = max(array.dtype.itemsize, np.float32().itemsize if is_operand else 0)
  times = 2 if var in producers and producers[var].primitive.name == "exp" else 1
  return times * width * array.size


def _bytes(var: Var) -> int:
  return _array(var).dtype.itemsize * _array(var).size


def _array(var: Var) -> Any:
  return var.aval


def _argument(producers: dict[Var, JaxprEqn], var: Var) -> Var:
  """The variable that is kept in place of `var`: x for c x, x / c and x > c with a number c."""
  while var in producers and producers[var].primitive.name in ("mul", "div", *COMPARISONS):
    first, second = producers[var].invars
    if isinstance(first, Literal) and producers[var].primitive.name == "mul":
      first, second = second, first
    origin = _origin(producers, first) if isinstance(second, Literal) else None
    if origin is None:
      return var
    var = origin
  return var


def _origins(producers: dict[Var, JaxprEqn], atoms: Iterable[Atom]) -> set[Var]:
  found = (_origin(producers, atom) for atom in atoms)
  return {var for var in found if var is not None}


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
  if name in SAME_VALUES:
    return equation.invars[0]
  if name != "jit":
    return var
  inner = equation.params["jaxpr"].jaxpr
  result = inner.outvars[equation.outvars.index(var)]
  origin = _origin(_producers(inner), result)
  if origin is None or origin in inner.constvars:
    return Literal(0, var.aval)
  return equation.invars[inner.invars.index(origin)] if origin in inner.invars else var
