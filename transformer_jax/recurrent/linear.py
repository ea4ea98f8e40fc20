"""Linear maps with float32 results; one matrix can hold those of several gates side by side."""

from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.model.config import Dtype


def matmul(x: jax.Array, kernel: jax.Array, dtype: Dtype) -> jax.Array:
  """x W, multiplied in `dtype`: `[..., inputs]`, `[inputs, outputs]` -> float32 `[..., outputs]`."""
  x, kernel = x.astype(dtype.value), kernel.astype(dtype.value)
  return jnp.einsum("...i,io->...o", x, kernel, preferred_element_type=jnp.float32)


def side_by_side(initializer: nn.initializers.Initializer, gates: int) -> nn.initializers.Initializer:
  """An initializer that draws the matrix of each gate separately."""

  def init(
    key: jax.Array, shape: Sequence[int], dtype: jnp.dtype = jnp.float32, out_sharding: None = None
  ) -> jax.Array:
    keys = jax.random.split(key, gates)
    return jnp.concatenate([initializer(k, (*shape[:-1], shape[-1] // gates), dtype) for k in keys], axis=-1)

  return init


class Linear(nn.Module):
  """x W, or x W + b.

  Attributes:
    inputs, outputs: the widths.
    dtype: the type of the matmul.
    gates: how many matrices stand side by side in W.
    use_bias: whether there is a bias b, at first 0.
  """

  inputs: int
  outputs: int
  dtype: Dtype
  gates: int = 1
  use_bias: bool = False

  def setup(self):
    init = side_by_side(nn.initializers.glorot_uniform(), self.gates)
    self.kernel = self.param("kernel", init, (self.inputs, self.outputs))
    if self.use_bias:
      self.b = self.param("bias", nn.initializers.zeros, (self.outputs,))

  def __call__(self, x: jax.Array) -> jax.Array:
    """`[..., inputs]` -> float32 `[..., outputs]`."""
    y = matmul(x, self.kernel, self.dtype)
    return y + jnp.broadcast_to(self.b, y.shape) if self.use_bias else y
