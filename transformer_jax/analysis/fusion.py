"""What a fused kernel computes again in the backward pass, rather than read it from memory."""

from jax.extend.core import JaxprEqn, Literal, Var

Atom = Var | Literal

SAME_VALUES = ("reshape", "broadcast_in_dim", "squeeze", "expand_dims", "transpose")
_COMPARISONS = ("gt", "lt", "ge", "le")
_ARITHMETIC = ("add", "sub", "mul", "div", "neg", "max", "min", "square", "integer_pow", "rsqrt", "sqrt")
_CHEAP = {*SAME_VALUES, *_COMPARISONS, *_ARITHMETIC, "convert_element_type", "select_n", "and", "or", "not", "eq", "ne"}
_CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "custom_jvp_call": "call_jaxpr"}  # and their parameter
_SMALL = 1 / 8  # of another array


def computed_again(producers: dict[Var, JaxprEqn], var: Var, kept: set[Var]) -> bool:
  """Whether `var` is a cheap elementwise function of other kept arrays and of small ones, or told by one.

  Args:
    producers: a variable -> the equation that computes it.
    var: the variable.
    kept: all variables that are kept, and the inputs and constants.
  """
  size: int = var.aval.size  # pyright: ignore[reportAttributeAccessIssue]

  def at_hand(operand: Atom) -> bool:
    if isinstance(operand, Literal) or operand in kept or operand.aval.size <= _SMALL * size:  # pyright: ignore
      return True
    return from_others(operand)

  def from_others(result: Var) -> bool:
    return result in producers and _is_cheap(producers[result]) and all(map(at_hand, producers[result].invars))

  return from_others(var) or _is_told_by_another(producers, var, kept)


def _is_told_by_another(producers: dict[Var, JaxprEqn], var: Var, kept: set[Var]) -> bool:
  """Whether `var` is a comparison such as x > 0, and a kept array is max(x, 0), which tells it as well."""
  if producers[var].primitive.name not in _COMPARISONS:
    return False
  others = (producers[other] for other in kept if other is not var and other in producers)
  return any(_is_cheap(other) and producers[var].invars[0] in other.invars for other in others)


def _is_cheap(equation: JaxprEqn) -> bool:
  name = equation.primitive.name
  if name in _CALLS:
    return all(map(_is_cheap, equation.params[_CALLS[name]].jaxpr.eqns))
  return name in _CHEAP
