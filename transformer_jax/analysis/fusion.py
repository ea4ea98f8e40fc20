"""What an accelerator computes again in the backward pass, in fused kernels, rather than read it from memory."""

from collections.abc import Set

from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var

Atom = Var | Literal

SAME_VALUES = ("reshape", "broadcast_in_dim", "squeeze", "expand_dims", "transpose")
COMPARISONS = ("gt", "lt", "ge", "le", "eq", "ne")
_ARITHMETIC = ("add", "sub", "mul", "div", "neg", "max", "min", "square", "integer_pow", "rsqrt", "sqrt")
_CHEAP = {*SAME_VALUES, *COMPARISONS, *_ARITHMETIC, "convert_element_type", "select_n", "and", "or", "not"}
_CALLS = {"jit": "jaxpr", "custom_jvp_call": "call_jaxpr"}  # and their parameter
_SMALL = 1 / 8  # of the size of an array; so much smaller arrays cost nothing beside it


def computed_again(jaxpr: Jaxpr, kept: Set[Var]) -> set[Var]:
  """The kept arrays that are cheap elementwise functions of other kept arrays and of small ones.

  Args:
    jaxpr: a function.
    kept: the variables that are kept, and the inputs and constants.
  """
  return {var for size in {_size(var) for var in kept} for var in _from_others(jaxpr, kept, size)}


def _from_others(jaxpr: Jaxpr, kept: Set[Var], size: int) -> set[Var]:
  """The kept arrays of one size that are functions of other kept arrays and of arrays that are small beside them."""
  functions: set[Var] = set()

  def is_at_hand(operand: Atom) -> bool:
    given = isinstance(operand, Literal) or operand in kept or operand in functions
    return given or _size(operand) <= _SMALL * size

  for equation in jaxpr.eqns:
    if _is_cheap(equation) and all(map(is_at_hand, equation.invars)):
      functions.update(equation.outvars)
  return {var for var in functions & kept if _size(var) == size}


def _is_cheap(equation: JaxprEqn) -> bool:
  name = equation.primitive.name
  if name in _CALLS:
    return all(map(_is_cheap, equation.params[_CALLS[name]].jaxpr.eqns))
  return name in _CHEAP


def _size(var: Atom) -> int:
  return var.aval.size  # pyright: ignore[reportAttributeAccessIssue]
