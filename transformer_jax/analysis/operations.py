"""The operations of a traced function, and the longest chain of operations that wait for one another.

traced = jax.make_jaxpr(function)(*arguments).jaxpr
operations.matmuls(traced), operations.sequential(traced)
"""

import collections
import functools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var, jaxprs_in_params

from transformer_jax.runtime.errors import InputError

_MATMULS = ("dot_general", "shared_matmul", "conv_general_dilated")


def matmuls(jaxpr: Jaxpr) -> int:
  """The multiplications and additions of all matmuls and convolutions, each counted as often as it runs."""
  counts = count(jaxpr)
  return sum(counts[name] for name in _MATMULS)


def count(jaxpr: Jaxpr) -> collections.Counter[str]:
  """Counts operations by primitive, such as "dot_general" and "tanh".

  A matmul with m n k multiplications has 2 m n k operations. A convolution
  likewise, with the zeros beyond the ends. Any other primitive has as many as its
  largest operand or result has elements. The body of a scan counts as often as it
  runs. A conditional counts, for each primitive, as the branch with most of it.

  Raises:
    InputError: there is a while loop, whose number of steps is not known.
  """
  total: collections.Counter[str] = collections.Counter()
  for equation in jaxpr.eqns:
    total += _count_equation(equation)
  return total


def _count_equation(equation: JaxprEqn) -> collections.Counter[str]:
  name, inner = equation.primitive.name, [count(sub) for sub in _inner(equation)]
  if name == "cond":
    return functools.reduce(operator.or_, inner)  # the larger of two counts
  if inner:
    times = equation.params["length"] if name == "scan" else 1
    return collections.Counter({key: times * n for one in inner for key, n in one.items()})
  return collections.Counter({name: _own(equation)})


def _own(equation: JaxprEqn) -> int:
  """The operations of a primitive that calls no other."""
  values: list[Any] = [atom.aval for atom in (*equation.invars, *equation.outvars)]
  shapes = [value.shape for value in values if hasattr(value, "shape")]
  match equation.primitive.name:
    case "dot_general":
      (contracted, _), _ = equation.params["dimension_numbers"]
      return 2 * math.prod(shapes[-1]) * math.prod(shapes[0][axis] for axis in contracted)
    case "shared_matmul":
      return 2 * shapes[0][1] * math.prod(shapes[2])
    case "conv_general_dilated":
      features = equation.params["dimension_numbers"].rhs_spec[0]
      return 2 * math.prod(shapes[-1]) * math.prod(shapes[1]) // shapes[1][features]
    case _:
      return max(map(math.prod, shapes), default=0)


def largest(jaxpr: Jaxpr) -> int:
  """The bytes of the largest result of an operation."""
  sizes = [0]
  for equation in jaxpr.eqns:
    values: list[Any] = [variable.aval for variable in equation.outvars]
    sizes += [value.size * value.dtype.itemsize for value in values if hasattr(value, "dtype")]
    sizes += map(largest, jaxprs_in_params(equation.params))
  return max(sizes)


def sequential(jaxpr: Jaxpr) -> int:
  """The length of the longest chain of primitives in which each needs the result of the previous one.

  A matmul of any size counts as one: enough arithmetic units can compute it at
  once, but no number of them can shorten the chain.

  Raises:
    InputError: there is a while loop, whose number of steps is not known.
  """
  return max(_depths(jaxpr, [0] * len(jaxpr.invars)), default=0)


def _depths(jaxpr: Jaxpr, inputs: Sequence[int]) -> list[int]:
  """The length of the chain that ends in each output; `inputs` are the lengths of the chains before the inputs."""
  known: dict[Var, int] = dict(zip(jaxpr.invars, inputs, strict=True))

  def depth(atom: Var | Literal) -> int:
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
  # What is stacked over the steps has one axis less inside the loop. The parameters' names depend on the JAX version.
  carried = sum(map(_same_rank, equation.outvars, body.outvars))
  first = sum(map(_same_rank, equation.invars, body.invars)) - carried
  constants, carry, slices = inputs[:first], inputs[first : first + carried], inputs[first + carried :]
  stacked = [0] * (len(equation.outvars) - carried)
  for _ in range(equation.params["length"]):
    results = _depths(body, [*constants, *carry, *slices])
    carry = results[:carried]
    stacked = [max(depths) for depths in zip(stacked, results[carried:], strict=True)]
  return [*carry, *stacked]


def _same_rank(outside: Any, inside: Any) -> bool:
  return outside.aval.ndim == inside.aval.ndim


def _inner(equation: JaxprEqn) -> Iterator[Jaxpr]:
  """The functions that an operation calls."""
  if equation.primitive.name == "while":
    raise InputError("the operations of the model are not known before it runs, as it has a while loop")
  return jaxprs_in_params(equation.params)
