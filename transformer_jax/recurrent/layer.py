"""What the recurrent layers have in common: their sizes, and the way over all positions of a row."""

from typing import Generic, TypeVar

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.model.config import Dtype
from transformer_jax.recurrent.linear import matmul
from transformer_jax.recurrent.recurrence import recurrence
from transformer_jax.runtime.values import PyTree

State = TypeVar("State")  # an array `[..., hidden]`, or a tree of several


class Layer(nn.Module, Generic[State]):
  """The base of `LSTM`, `GRU` and `RNN`, whose `setup` makes the parameters: `kernel` and `bias` are those of `inputs`.

  Attributes:
    input_size: the width of x.
    hidden_size: the width of the state.
    dtype: the type of matmuls.
  """

  input_size: int
  hidden_size: int
  dtype: Dtype

  def __call__(
    self, x: jax.Array, restarts: jax.Array, initial: State | None = None, *, reverse: bool = False
  ) -> State:
    """All positions of a row.

    Args:
      x: `[length, input]`.
      restarts: `[length]` booleans, true at each sentence's first token in the order of reading.
      initial: the state before each sentence, at its first token; arrays `[length, hidden]`; None is zeros.
      reverse: read from the last position to the first.

    Returns:
      The states after each position, `[length, hidden]` float32 each.
    """
    before = self.zeros(x.shape[0]) if initial is None else initial
    return recurrence(type(self).advance, self, self.inputs(x), restarts, before, reverse=reverse)

  def inputs(self, x: jax.Array) -> jax.Array:
    """x W + b for all gates, in one matmul for all positions, as it needs no state: `[..., gates * hidden]`."""
    sums = matmul(x, self.kernel, self.dtype)
    return sums + jnp.broadcast_to(self.bias, sums.shape)

  def zeros(self, length: int) -> PyTree:
    """A state of zeros for each of `length` positions."""
    return jnp.zeros((length, self.hidden_size))

  def advance(self, state: State, inputs: jax.Array) -> State:
    """One position; `inputs` is `self.inputs(x)` of this position."""
    raise NotImplementedError
