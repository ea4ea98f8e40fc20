"""Rematerialisation: the backward pass computes a part of the forward pass again instead of keeping its results."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import flax.linen as nn
import jax

Module = TypeVar("Module", bound=nn.Module)
Arguments = ParamSpec("Arguments")

Function = Callable[Concatenate[Module, Arguments], jax.Array]


def rematerialise(function: Function[Module, Arguments], when: bool) -> Function[Module, Arguments]:
  """`function` itself, or a function with the same result and gradients, whose backward pass computes it again.

  Between forward and backward pass only the arguments are kept. Dropout draws the same bits both times.

  Args:
    function: (module, arrays) -> array; it may use the module's parameters and random streams.
    when: false for `function` itself.

  References:
    Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost.
  """
  return nn.remat(function) if when else function
