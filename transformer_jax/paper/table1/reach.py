"""How far a layer type carries information (§4, "maximum path length"): which inputs each output depends on."""

from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax.model.params import Params
from transformer_jax.runtime.values import PyTree

# From the input `[n, model]`, what each layer of a stack gives: `[layers, n, model]`.
Stack = Callable[[jax.Array], jax.Array]


def random_params(module: nn.Module, x: jax.Array, *axes: int) -> Params:
  """Parameters in which nothing is 0, each with these axes before its own."""
  generator = np.random.default_rng(0)
  shapes = jax.eval_shape(module.init, jax.random.key(0), x)
  return jax.tree.map(lambda leaf: 0.5 * generator.standard_normal((*axes, *leaf.shape)).astype(leaf.dtype), shapes)


def stack(module: nn.Module, depth: int) -> Stack:
  """`depth` layers of one kind, each with random weights of its own."""

  def outputs(x: jax.Array) -> jax.Array:
    def layer(x: jax.Array, params: Params) -> tuple[jax.Array, jax.Array]:
      y: PyTree = module.apply(params, x)
      return y, y

    return jax.lax.scan(layer, x, random_params(module, x, depth))[1]

  return outputs


def reach(outputs: Stack, x: jax.Array) -> np.ndarray:
  """Where the Jacobian is not 0: `[layers, n, n]` booleans, true where output i depends on input j after a layer."""
  jacobian = jax.jit(jax.jacfwd(outputs))(x)  # [layers, n, model, n, model]
  return np.asarray(jnp.any(jacobian != 0, axis=(2, 4)))


def path_length(reached: np.ndarray, pairs: np.ndarray) -> int:
  """The fewest layers that join all `pairs`, `[n, n]` booleans: the longest of the shortest paths.

  Raises:
    ValueError: some are not joined after the last layer.
  """
  joined = (reached | ~pairs).all(axis=(1, 2))
  if not joined.any():
    raise ValueError(f"{len(reached)} layers do not join all pairs")
  return int(np.argmax(joined)) + 1
