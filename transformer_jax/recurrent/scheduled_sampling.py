"""The decoder's input in scheduled sampling (Bengio et al. 2015): some of its tokens are the model's own.

The algorithm alone; it imports no model.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.model.special_tokens import BOS, PAD
from transformer_jax.ops.draw import draw
from transformer_jax.recurrent.recurrence import recurrence
from transformer_jax.runtime.values import PyTree

Module = TypeVar("Module", bound=nn.Module)

# (module, decoder's state, input token, what else the position needs) -> the new state, and logits `[vocab]`.
Step = Callable[[Module, PyTree, jax.Array, PyTree], tuple[PyTree, jax.Array]]


class Reading(NamedTuple):
  """What goes from position to position.

  Attributes:
    state: the decoder's state.
    own: the token that the model draws after this position, an int32 scalar.
  """

  state: PyTree
  own: jax.Array


def choose_inputs(
  step: Step[Module],
  module: Module,
  reference: jax.Array,
  forced: jax.Array,
  uniform: jax.Array,
  restarts: jax.Array,
  initial: PyTree,
  more: PyTree,
) -> jax.Array:
  """The decoder's input: at each position the reference, or the token that the model draws after the one before.

  Args:
    step: advances the decoder by one token.
    module: the step's model.
    reference: the decoder's input in teacher forcing, `[target]` int32.
    forced: `[target]` booleans, whether the input is the reference; it always is at a sentence's first position.
    uniform: `[target]` numbers from [0, 1), by which the tokens are drawn.
    restarts: `[target]` booleans, true at each sentence's first position.
    initial: the decoder's state before each sentence, at its first position; arrays `[target, ...]`.
    more: what else each position needs, arrays `[target, ...]`.

  Returns:
    `[target]` int32.
  """
  forced = forced | restarts

  def advance(module: Module, before: Reading, at: PyTree) -> Reading:
    reference, forced, uniform, more = at
    token = jnp.where(forced, reference, before.own)
    state, logits = step(module, before.state, token, more)
    # No output has PAD or BOS.
    return Reading(state, draw(logits.at[jnp.array([PAD, BOS])].set(-jnp.inf), uniform))

  read = recurrence(advance, module, (reference, forced, uniform, more), restarts, Reading(initial, reference))
  return jnp.where(forced, reference, jnp.roll(read.own, 1))
