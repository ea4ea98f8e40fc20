"""The recurrence over a packed row: a state goes from token to token and restarts at each sentence."""

from collections.abc import Callable
from typing import TypeVar

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.runtime.values import PyTree

# Trees of arrays; a state keeps its shapes from token to token.
State = TypeVar("State")
Inputs = TypeVar("Inputs")
Module = TypeVar("Module", bound=nn.Module)
Result = TypeVar("Result")


def recurrence(
  step: Callable[[Module, State, Inputs], State],
  module: Module,
  inputs: Inputs,
  restarts: jax.Array,
  initial: State,
  *,
  reverse: bool = False,
) -> State:
  """state_t = step(state_(t-1), inputs_t), with initial_t in place of state_(t-1) if restarts_t.

  Args:
    step: (module, state, inputs of one position) -> state.
    module: the module whose parameters the step uses.
    inputs: a tree of arrays `[length, ...]`.
    restarts: `[length]` booleans, true at each sentence's first token in the order of reading.
    initial: the state before each position, arrays `[length, ...]`; only those at restarts are used.
    reverse: read from the last position to the first.

  Returns:
    The state after each position, arrays `[length, ...]` like `initial`.
  """

  def advance(module: Module, state: State, at: tuple[Inputs, jax.Array, State]) -> tuple[State, State]:
    inputs, restart, initial = at
    state = step(module, where(restart, initial, state), inputs)
    return state, state

  scan = nn.scan(
    advance,
    variable_broadcast="params",
    variable_axes={"intermediates": 0},  # what a step sows, if the caller asks for it: arrays `[length, ...]`
    split_rngs={"params": False},
    reverse=reverse,
  )
  nothing = jax.tree.map(lambda x: jnp.zeros_like(x[0]), initial)
  return scan(module, nothing, (inputs, restarts, initial))[1]


def vmap_method(function: Callable[..., Result], in_axes: PyTree) -> Callable[..., Result]:
  """`jax.vmap` for a function of a module and arrays: maps over the arrays and shares the parameters."""
  return nn.vmap(
    function,
    in_axes=in_axes,
    variable_axes={"params": None, "intermediates": 0},  # as in `recurrence`
    split_rngs={"params": False},
  )


def where(condition: jax.Array, a: State, b: State) -> State:
  """Tree a if the scalar condition is true, else tree b."""
  return jax.tree.map(lambda x, y: jnp.where(condition, x, y), a, b)


def begins(positions: jax.Array, mask: jax.Array, *, reverse: bool) -> jax.Array:
  """Marks each sentence's first token in the order of reading.

  Args:
    positions: `[length]`, from 0 in each sentence.
    mask: `[length, length]`, true between the real tokens of one sentence.
    reverse: whether sentences are read from their ends.

  Returns:
    `[length]` booleans; those of padding mean nothing.
  """
  # The last token of a sentence may not look at the next token of the row.
  return jnp.concatenate([~jnp.diagonal(mask, 1), jnp.ones(1, bool)]) if reverse else positions == 0


def last_read(mask: jax.Array, *, reverse: bool) -> jax.Array:
  """The index of the token read last among those that each query may look at: `[query, source]` -> `[query]`."""
  return jnp.argmax(mask, axis=1) if reverse else mask.shape[1] - 1 - jnp.argmax(mask[:, ::-1], axis=1)


def take(states: State, index: jax.Array) -> State:
  """The states at the positions `index`: arrays `[length, ...]`, `[n]` -> `[n, ...]`."""
  return jax.tree.map(lambda x: x[index], states)
