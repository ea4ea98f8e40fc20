"""The embedding and the output layer, which share one table (§3.4)."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.model.config import AnyModelConfig
from transformer_jax.ops.shared_matmul import shared_matmul


def embed(table: jax.Array, tokens: jax.Array) -> jax.Array:
  """The tokens' rows times sqrt(d_model): `[vocab, model]`, `[...]` integers -> `[..., model]`."""
  return table[tokens] * table.shape[1] ** 0.5


def output_logits(
  table: jax.Array, hidden: jax.Array, dtype: str = "float32", bias: jax.Array | None = None
) -> jax.Array:
  """The linear transformation h E^T, by option with a bias b: h E^T + b.

  Args:
    table: E, `[vocab, model]`.
    hidden: h, `[..., model]`.
    dtype: the type of the factors.
    bias: b, `[vocab]` float32.

  Returns:
    `[..., vocab]` float32.
  """
  rows = hidden.astype(dtype).reshape(-1, hidden.shape[-1])
  logits = shared_matmul(rows, table.astype(dtype), transposed=True, dtype=jnp.float32)
  if bias is not None:
    logits += bias[None]
  return logits.reshape(*hidden.shape[:-1], -1)


class Embedding(nn.Module):
  """A table `[vocab, model]`, drawn from N(0, 1 / d_model), so that the output of `embed` has unit variance.

  Attributes:
    config: the model's.
    of_source: whether the table has the source's vocabulary, if there are two.
  """

  config: AnyModelConfig
  of_source: bool = False

  def setup(self):
    source, target = self.config.vocab_sizes[0], self.config.vocab_sizes[-1]
    shape = (source if self.of_source else target, self.config.d_model)
    self.table = self.param("table", nn.initializers.normal(self.config.d_model**-0.5), shape)

  def __call__(self, tokens: jax.Array) -> jax.Array:
    return embed(self.table, tokens)
