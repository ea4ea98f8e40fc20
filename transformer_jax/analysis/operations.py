"""What a traced function will compute: its operations, and how many of them wait for one another.

traced = jax.make_jaxpr(function)(*arguments).jaxpr
operations.products(traced), operations.sequential(traced)
"""

import collections
import functools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

from jax.extend.core import Jaxpr, JaxprEqn, Literal, jaxprs_in_params

_PRODUCTS = ("dot_general", "shared_product", "conv_general_dilated")


def products(jaxpr: Jaxpr) -> int:
  """Multiplications and additions of all matrix products and convolutions, each counted as often as it is done."""
  counts = count(jaxpr)
  return sum(counts[name] for name in _PRODUCTS)


def count(jaxpr: Jaxpr) -> collections.Counter[str]:
  """Operations by primitive, such as "dot_general" and "tanh".

  A matrix product of m n k multiplications has twice as many operations, and a
  convolution likewise, zeros beyond the ends included; any other primitive has the
  elements of its largest operand or result. The body of a scan counts as often as
  it runs; of a conditional, the most of its branches.

  Raises:
    ValueError: there is a loop of which nobody knows how often it runs.
  """
  total: collections.Counter[str] = collections.Counter()
  for equation in jaxpr.eqns:
    total += _of(equation)
  return total


def _of(equation: JaxprEqn) -> collections.Counter[str]:
  name, inner = equation.primitive.name, [count(sub) for sub in _inner(equation)]
  if name == "cond":
    return functools.reduce(operator.or_, inner)  # the larger of two counts
  if inner:
    times = equation.params["length"] if name == "scan" else 1
    return collections.Counter({key: times * n for one in inner for key, n in one.items()})
  return collections.Counter({name: _own(equation)})


def _own(equation: JaxprEqn) -> int:
  """The operations of a primitive that has no other inside."""
  values: list[Any] = [atom.aval for atom in (*equation.invars, *equation.outvars)]
  shapes = [value.shape for value in values if hasattr(value, "shape")]
  match equation.primitive.name:
    case "dot_general":
      (contracted, _), _ = equation.params["dimension_numbers"]
      return 2 * math.prod(shapes[-1]) * math.prod(shapes[0][axis] for axis in contracted)
    case "shared_product":
      return 2 * math.prod(shapes[0]) * shapes[1][1]
    case "conv_general_dilated":
      features = equation.params["dimension_numbers"].rhs_spec[0]
      return 2 * math.prod(shapes[-1]) * math.prod(shapes[1]) // shapes[1][features]
    case _:
      return max(map(math.prod, shapes), default=0)


def largest(jaxpr: Jaxpr) -> int:
  """Bytes of the largest value that an operation gives."""
  sizes = [0]
  for equation in jaxpr.eqns:
    values: list[Any] = [variable.aval for variable in equation.outvars]
    sizes += [value.size * value.dtype.itemsize for value in values if hasattr(value, "dtype")]
    sizes += map(largest, jaxprs_in_params(equation.params))
  return max(sizes)


def sequential(jaxpr: Jaxpr) -> int:
  """The length of the longest chain of primitives in which each needs the result of the one before.

  A matrix product is one, however large: it is what a machine with enough
  arithmetic units could not shorten.

  Raises:
    ValueError: as `count`.
  """
  return max(_depths(jaxpr, [0] * len(jaxpr.invars)), default=0)


def _depths(jaxpr: Jaxpr, inputs: Sequence[int]) -> list[int]:
  """How long the chain is that ends in each output, where those that end in the inputs are so long already."""
  known: dict[Any, int] = dict(zip(jaxpr.invars, inputs, strict=True))

  def depth(atom: Any) -> int:
    return 0 if isinstance(atom, Literal) else known.get(atom, 0)

  for equation in jaxpr.eqns:
    results = _depths_of(equation, [depth(atom) for atom in equation.invars])
    known.update(zip(equation.outvars, results, strict=True))
  return [depth(atom) for atom in jaxpr.outvars]


def _depths_of(equation: JaxprEqn, inputs: list[int]) -> list[int]:
  name, inner = equation.primitive.name, list(_inner(equation))
  if name == "scan":
    return _depths_of_scan(equation, inner[0], inputs)
  if name == "cond":
    branches = [_depths(branch, [max(inputs[0], depth) for depth in inputs[1:]]) for branch in inner]
    return [max(depths) for depths in zip(*branches, strict=True)]
  if inner:
    return _depths(inner[0], inputs)
  return [max(inputs, default=0) + 1] * len(equation.outvars)


def _depths_of_scan(equation: JaxprEqn, body: Jaxpr, inputs: list[int]) -> list[int]:
  first, carried = equation.params["num_consts"], equation.params["num_carry"]
  constants, carry, slices = inputs[:first], inputs[first : first + carried], inputs[first + carried :]
  stacked = [0] * (len(equation.outvars) - carried)
  for _ in range(equation.params["length"]):
    results = _depths(body, [*constants, *carry, *slices])
    carry = results[:carried]
    stacked = [max(depths) for depths in zip(stacked, results[carried:], strict=True)]
  return [*carry, *stacked]


def _inner(equation: JaxprEqn) -> Iterator[Jaxpr]:
  """The functions that an operation calls."""
  if equation.primitive.name == "while":
    raise ValueError("a while loop has no number of steps that could be known before it runs")
  return jaxprs_in_params(equation.params)
