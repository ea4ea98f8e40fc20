"""The rows of Table 1 (§4): each a layer that can be counted and timed, and a stack whose paths can be measured."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Jaxpr

from transformer_jax.model.attention import MultiHeadAttention, scaled_dot_product_attention
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.params import Params
from transformer_jax.paper.table1.convolution import SeparableConvolution, convolution, dilated_convolution
from transformer_jax.paper.table1.reach import Stack, path_length, random_params, reach, stack
from transformer_jax.paper.table1.recurrent import Recurrent
from transformer_jax.paper.table1.restricted import RestrictedAttention, restricted_attention
from transformer_jax.runtime.values import PyTree

_HEAD = 64  # d_k = d_v of the paper's models


class Sizes(NamedTuple):
  """n positions of width d, a kernel of width k, a neighbourhood of r to either side."""

  n: int
  d: int
  k: int = 3
  r: int = 1


class Layer(NamedTuple):
  """A layer as a function of arrays.

  Attributes:
    function: the layer.
    shapes: the shapes of its arguments: Q, K and V, or the parameters and then the input.
  """

  function: Callable[..., jax.Array]
  shapes: tuple[PyTree, ...]


class Row(NamedTuple):
  """A row of Table 1, or a layer that §4 mentions.

  Attributes:
    complexity: the complexity of a layer, in the paper's words.
    exponents: the exponents of the sizes, if the complexity is a single product of powers.
    layer: makes the layer for given sizes.
  """

  complexity: str
  exponents: dict[str, int]
  layer: Callable[[Sizes], Layer]

  def traced(self, sizes: Sizes) -> Jaxpr:
    """The layer's jaxpr, for `operations`."""
    layer = self.layer(sizes)
    return jax.make_jaxpr(layer.function)(*layer.shapes).jaxpr


def _of_module(module: nn.Module, sizes: Sizes) -> Layer:
  x = jax.ShapeDtypeStruct((sizes.n, sizes.d), jnp.float32)

  def function(params: Params, x: jax.Array) -> jax.Array:
    return jnp.asarray(module.apply(params, x))

  return Layer(function, (jax.eval_shape(lambda x: module.init(jax.random.key(0), x), x), x))


def _heads(d: int) -> int:
  return max(1, d // _HEAD)


def _queries_keys_values(sizes: Sizes) -> tuple[jax.ShapeDtypeStruct, ...]:
  heads = _heads(sizes.d)
  return (jax.ShapeDtypeStruct((sizes.n, heads, sizes.d // heads), jnp.float32),) * 3


def _self_attention(sizes: Sizes) -> Layer:
  def function(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    return scaled_dot_product_attention(query, key, value, jnp.ones((sizes.n, sizes.n), bool))

  return Layer(function, _queries_keys_values(sizes))


def _restricted(sizes: Sizes) -> Layer:
  return Layer(functools.partial(restricted_attention, radius=sizes.r), _queries_keys_values(sizes))


class _SelfAttention(nn.Module):
  """Multi-head attention of a sequence over all of itself."""

  config: ModelConfig

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    mask = jnp.ones((len(x), len(x)), bool)
    return MultiHeadAttention(self.config)(x, x, mask, deterministic=True)


def _model(d: int) -> ModelConfig:
  return ModelConfig(d_model=d, num_heads=_heads(d))


ROWS = {
  "self-attention": Row("O(n^2 d)", {"n": 2, "d": 1}, _self_attention),
  "self-attention with its projections": Row(
    "O(n^2 d + n d^2)", {}, lambda sizes: _of_module(_SelfAttention(_model(sizes.d)), sizes)
  ),
  "recurrent": Row("O(n d^2)", {"n": 1, "d": 2}, lambda sizes: _of_module(Recurrent(sizes.d), sizes)),
  "convolutional": Row(
    "O(k n d^2)", {"k": 1, "n": 1, "d": 2}, lambda sizes: _of_module(convolution(sizes.d, sizes.k), sizes)
  ),
  "separable convolutional": Row(
    "O(k n d + n d^2)", {"n": 1}, lambda sizes: _of_module(SeparableConvolution(sizes.d, sizes.k), sizes)
  ),
  "restricted self-attention": Row("O(r n d)", {"r": 1, "n": 1, "d": 1}, _restricted),
}


class Path(NamedTuple):
  """A maximum path length: layers (of the recurrence: steps) that join all pairs, found and by formula."""

  found: int
  formula: int


def path_lengths(n: int, k: int, r: int) -> dict[str, Path]:
  """The path length of each layer type, from the Jacobians of stacks with random weights.

  Args:
    n: the number of positions.
    k: the width of the convolutions, odd, so that they reach (k - 1) / 2 positions to either side.
    r: the radius of the restricted self-attention.
  """
  d = 4  # any width will do
  x = jnp.asarray(np.random.default_rng(1).standard_normal((n, d)), jnp.float32)
  everything, past = np.ones((n, n), bool), np.tri(n, dtype=bool)
  half = (k - 1) // 2
  digits = next(digits for digits in range(n) if k**digits >= n)  # log_k n, rounded up
  stacks: dict[str, tuple[Stack, np.ndarray, int]] = {
    "self-attention": (stack(_SelfAttention(_model(d)), 2), everything, 1),
    "recurrent": (_steps(n, d), past, n),
    "convolutional": (stack(convolution(d, k), n), everything, -(-(n - 1) // half)),
    "dilated convolutional": (_dilated(d, k, digits), past, digits),
    "restricted self-attention": (stack(RestrictedAttention(_model(d), r), n), everything, -(-(n - 1) // r)),
  }
  return {
    name: Path(path_length(reach(outputs, x), pairs), formula) for name, (outputs, pairs, formula) in stacks.items()
  }


def _steps(n: int, d: int) -> Stack:
  """The steps of one recurrent layer in place of layers."""
  module = Recurrent(d)

  def outputs(x: jax.Array) -> jax.Array:
    return jnp.asarray(module.apply(random_params(module, x), x, n, method="steps"))

  return outputs


def _dilated(d: int, k: int, depth: int) -> Stack:
  """Convolutions of which each reaches k times as far as the one before."""

  def outputs(x: jax.Array) -> jax.Array:
    found = []
    for layer in range(depth):
      module = dilated_convolution(d, k, k**layer)
      x = jnp.asarray(module.apply(random_params(module, x), x))
      found.append(x)
    return jnp.stack(found)

  return outputs
