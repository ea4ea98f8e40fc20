"""Gradients of a translation model's losses with respect to its earlier states, and the bound of Pascanu et al. 2013.

The sentence pair is read as one sequence: the tokens of the source, then the decoder's input. h(s) is what the model
passes on after token s:

- a recurrent network's state: h of each layer, and c of an LSTM's; in Bahdanau's encoder the states of both directions;
- the Transformer's vector of the token that enters its lowest layer.

loss(t) = -log P(y_t given the source and the earlier target tokens).
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from transformer_jax.model.config import ModelConfig
from transformer_jax.model.decoder import Decoder
from transformer_jax.model.encoder import Encoder
from transformer_jax.recurrent import stack
from transformer_jax.recurrent.bahdanau import Bahdanau
from transformer_jax.recurrent.config import Cell, SequenceToSequenceConfig

Tree = Any  # of arrays
Call = Callable[[Callable[[Any], Any]], Any]  # calls a function of the model with its parameters


class Bumps(NamedTuple):
  """What is added to h(s) of each token of the source and of the decoder's input: trees of arrays `[length, ...]`."""

  source: Tree
  target: Tree


class Norms(NamedTuple):
  """The norms of d loss(t) / d h(s).

  Attributes:
    source: for the tokens s of the source, `[target, source]`.
    target: for the tokens s of the decoder's input, `[target, target]`; only those with s < t count.
  """

  source: jax.Array
  target: jax.Array


@functools.partial(jax.jit, static_argnums=0)
def norms(model: nn.Module, params: Tree, source: jax.Array, target: jax.Array) -> Norms:
  """The norms for one sentence pair, tokens `[source]` and `[target]`."""
  jacobian = jax.jacrev(functools.partial(losses, model, params, source, target))
  return Norms(*map(_norm, jacobian(no_bumps(model, params, source, target))))


def _norm(jacobian: Tree) -> jax.Array:
  """`[target, token, ...]` -> `[target, token]`, over all arrays of the tree."""
  flat = jnp.concatenate([x.reshape(*x.shape[:2], -1) for x in jax.tree.leaves(jacobian)], axis=-1)
  largest = jnp.max(jnp.abs(flat), axis=-1, keepdims=True)
  scale = jnp.where(largest > 0, largest, 1)  # the square of a small number may be 0
  return scale[..., 0] * jnp.linalg.norm(flat / scale, axis=-1)


def losses(model: nn.Module, params: Tree, source: jax.Array, target: jax.Array, bumps: Bumps) -> jax.Array:
  """loss(t) for each token of the target, `[target]`, with the bumps added to the states."""
  call, inputs = _caller(model, params), _shifted(model, target)
  logits = (_transformer if isinstance(model.config, ModelConfig) else _recurrent)(call, model, source, inputs, bumps)
  return -jnp.take_along_axis(jax.nn.log_softmax(logits), target[:, None], axis=1)[:, 0]


def no_bumps(model: nn.Module, params: Tree, source: jax.Array, target: jax.Array) -> Bumps:
  """Zeros of the right shapes."""
  call, config = _caller(model, params), model.config

  def states() -> Bumps:
    if isinstance(config, ModelConfig):
      return Bumps(*(jnp.zeros((len(side), config.d_model)) for side in (source, target)))
    memory = _encode_all(call, source)
    view = _view(call, memory, len(source))
    if isinstance(model, Bahdanau):
      memory = tuple(jnp.split(memory, 2, axis=-1))
    return Bumps(memory, jax.tree.map(lambda x: jnp.broadcast_to(x, (len(target), *x.shape)), view.initial))

  return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(states))


def _transformer(call: Call, model: nn.Module, source: jax.Array, inputs: jax.Array, bumps: Bumps) -> jax.Array:
  """The logits `[target, vocab]` of the Transformer."""

  def bumped(method: Any, args: Any, kwargs: Any, context: Any) -> Any:
    side = {Encoder: bumps.source, Decoder: bumps.target}.get(type(context.module))
    if side is not None and context.method_name == "__call__":
      args = (args[0] + side, *args[1:])
    return method(*args, **kwargs)

  with nn.intercept_methods(bumped):
    return call(lambda model: model.logits(model(source, inputs)))


def _recurrent(call: Call, model: nn.Module, source: jax.Array, inputs: jax.Array, bumps: Bumps) -> jax.Array:
  """The logits `[target, vocab]` of a recurrent model, token by token."""
  encode = _encode_in_both_directions if isinstance(model, Bahdanau) else _encode_stack
  memory = _view(call, encode(call, model, source, bumps.source), len(source))
  return _decode(call, memory, inputs, bumps.target)[1]


def _encode_stack(call: Call, model: nn.Module, source: jax.Array, bumps: Tree) -> Tree:
  """The states of a stack after each token."""
  inputs = call(lambda model: model.encoder.inputs(model.embed_source(source, deterministic=True)))

  def advance(state: Tree, x: jax.Array) -> Tree:
    return call(lambda model: model.encoder.advance(state, x))

  return _read(advance, inputs, bumps, reverse=model.config.reverse_source)


def _encode_in_both_directions(call: Call, model: nn.Module, source: jax.Array, bumps: Tree) -> jax.Array:
  """The annotations of Bahdanau's model, `[source, 2 hidden]`."""
  sides = []
  for name, side in zip(("encoder_forward", "encoder_backward"), bumps, strict=True):
    inputs = call(lambda model, name=name: getattr(model, name).inputs(model.embed_source(source, deterministic=True)))

    def advance(state: Tree, x: jax.Array, name: str = name) -> Tree:
      return call(lambda model: getattr(model, name).advance(state, x))

    sides.append(_read(advance, inputs, side, reverse=name == "encoder_backward"))
  return jnp.concatenate(sides, axis=-1)


def _read(advance: Callable[[Tree, jax.Array], Tree], inputs: jax.Array, bumps: Tree, *, reverse: bool) -> Tree:
  """The states after each token, from a state of zeros; a bump changes what the next token finds."""

  def step(state: Tree, at: tuple[jax.Array, Tree]) -> tuple[Tree, Tree]:
    x, bump = at
    state = jax.tree.map(jnp.add, advance(state, x), bump)
    return state, state

  nothing = jax.tree.map(lambda x: jnp.zeros_like(x[0]), bumps)
  return jax.lax.scan(step, nothing, (inputs, bumps), reverse=reverse)[1]


def _decode(call: Call, memory: Any, inputs: jax.Array, bumps: Tree) -> tuple[Tree, jax.Array]:
  """The states before each token of the decoder's input, and the logits after it, `[target, vocab]`."""

  def step(state: Tree, at: tuple[jax.Array, Tree]) -> tuple[Tree, tuple[Tree, jax.Array]]:
    token, bump = at
    new, hidden = call(lambda model: model.step(state, model.embed(token, deterministic=True), memory))
    return jax.tree.map(jnp.add, new, bump), (state, call(lambda model: model.logits(hidden)))

  return jax.lax.scan(step, memory.initial, (inputs, bumps))[1]


class Bound(NamedTuple):
  """Bounds of `Norms.target`; see `bound`."""

  of_steps: np.ndarray
  of_matrix: np.ndarray | None


def has_bound(model: nn.Module) -> bool:
  """Whether `bound` is for this model: a stack of simple recurrent units without the context."""
  config = model.config
  return isinstance(config, SequenceToSequenceConfig) and config.cell is Cell.RNN and not config.feed_context


def bound(model: nn.Module, params: Tree, source: jax.Array, target: jax.Array) -> Bound:
  r"""The bounds of Pascanu et al. 2013, §2.1, on the norms of a decoder of simple recurrent units.

    |d loss(t)/d h(s)| <= |d loss(t)/d h(t)| prod_(s < i <= t) |d h(i)/d h(i-1)|
                       <= |d loss(t)/d h(t)| (gamma |U|)^(t - s)

  |.| of a matrix is its largest singular value. d h(i)/d h(i-1) = diag(1 - h(i)^2) U^T in one layer, and gamma = 1 is
  the largest derivative of tanh. `of_steps` has the first bound, `of_matrix` the second, which is for one layer (None
  with more): `[target, target]`, 0 where s >= t.
  """
  steps = _jacobians(model, params, source, target)
  last = np.linalg.norm(steps.last, axis=-1)
  of_steps = _products(last, np.array([_largest_singular_value(np.asarray(step)) for step in steps.steps]))
  if model.config.num_layers > 1:
    return Bound(of_steps, None)
  size = _largest_singular_value(np.asarray(params["decoder"]["rnn_0"]["recurrent"]))
  return Bound(of_steps, _products(last, np.full(len(last), size)))


class Slopes(NamedTuple):
  """The derivative of tanh at each state of one layer of simple recurrent units, 1 - h^2: `[token, hidden]`.

  A unit is saturated where it is near 0: the Jacobian of a step, diag(1 - h^2) U^T, has hardly anything of that unit.
  """

  encoder: np.ndarray
  decoder: np.ndarray


@functools.partial(jax.jit, static_argnums=0)
def slopes(model: nn.Module, params: Tree, source: jax.Array, target: jax.Array) -> Slopes:
  """The derivatives after each token of the source, and after each of the decoder's input, for one sentence pair."""
  call = _caller(model, params)
  read = _encode_all(call, source)
  bumps = no_bumps(model, params, source, target)[1]
  after, _ = _decode(call, _view(call, read, len(source)), _shifted(model, target), bumps)
  [encoder], [decoder] = (jax.tree.leaves(states) for states in (read, after))
  return Slopes(1 - encoder**2, 1 - decoder[1:] ** 2)  # the decoder begins with the encoder's last state


class Jacobians(NamedTuple):
  """Derivatives along the decoder.

  Attributes:
    steps: d h(i)/d h(i-1) for each step, `[target, state, state]`.
    last: d loss(t)/d h(t), with h the output of the highest layer, `[target, hidden]`.
  """

  steps: jax.Array
  last: jax.Array


@functools.partial(jax.jit, static_argnums=0)
def _jacobians(model: nn.Module, params: Tree, source: jax.Array, target: jax.Array) -> Jacobians:
  call, inputs = _caller(model, params), _shifted(model, target)
  memory = _view(call, _encode_all(call, source), len(source))
  states, _ = _decode(call, memory, inputs, no_bumps(model, params, source, target).target)

  def step(token: jax.Array, state: Tree) -> Tree:
    return call(lambda model: model.step(state, model.embed(token, deterministic=True), memory)[0])

  def jacobian(at: tuple[jax.Array, Tree]) -> jax.Array:
    token, state = at
    flat, tree_of = ravel_pytree(state)
    return jax.jacrev(lambda flat: ravel_pytree(step(token, tree_of(flat)))[0])(flat)

  def loss(hidden: jax.Array, token: jax.Array) -> jax.Array:
    return -jax.nn.log_softmax(call(lambda model: model.logits(model.output(hidden))))[token]

  after = stack.top(jax.vmap(step)(inputs, states))
  return Jacobians(jax.lax.map(jacobian, (inputs, states)), jax.vmap(jax.grad(loss))(after, target))


def _largest_singular_value(matrix: np.ndarray) -> float:
  """The root of the largest eigenvalue of A A^T, which takes less time than all singular values."""
  matrix = matrix.astype(np.float64)
  return float(np.sqrt(np.linalg.eigvalsh(matrix @ matrix.T)[-1]))


def _products(last: np.ndarray, factors: np.ndarray) -> np.ndarray:
  """last(t) times the factors of the steps s + 1 to t."""
  found = np.zeros((len(last), len(last)))
  for t, norm in enumerate(last):
    for s in range(t):
      found[t, s] = norm * np.prod(factors[s + 1 : t + 1])
  return found


def _shifted(model: Any, target: jax.Array) -> jax.Array:
  """The decoder's input."""
  return jnp.roll(jnp.asarray(target), 1).at[0].set(model.config.start_token)


def _encode_all(call: Call, source: jax.Array) -> Tree:
  """The model's own `encode`."""
  mask = jnp.ones((len(source), len(source)), bool)
  return call(lambda model: model.encode(source, jnp.arange(len(source)), mask))


def _view(call: Call, memory: Tree, length: int) -> Any:
  return call(lambda model: model.precompute_cross_attention(memory, jnp.ones(length, bool)))


def _caller(model: nn.Module, params: Tree) -> Call:
  return lambda function: model.apply({"params": params}, method=function)
