"""Attention (§3.2): scaled dot-product (eq. 1) as a pure function, multi-head as a module."""

from collections.abc import Callable
from typing import Literal

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_jax.model.config import ModelConfig, Remat
from transformer_jax.model.dropout import Dropout
from transformer_jax.model.promotion import promote_operands
from transformer_jax.ops import shared_matmul
from transformer_jax.ops.blocked_attention import blocked_attention, suits
from transformer_jax.ops.masked_softmax import masked_softmax

WEIGHTS = "attention_weights"  # the name of the weights in the collection "intermediates", for every model


def _unchanged(weights: jax.Array) -> jax.Array:
  return weights


def attention_weights(query: jax.Array, key: jax.Array, mask: jax.Array) -> jax.Array:
  r"""softmax(Q K^T / sqrt(d_k)), computed in float32.

  Args:
    query: Q, `[query, heads, d_k]`.
    key: K, `[key, heads, d_k]`.
    mask: `[query, key]` booleans, true where the query may look.

  Returns:
    `[heads, query, key]` float32; each row sums to 1, or is 0 where the query
    may look at nothing.
  """
  scores = jnp.einsum("qhd,khd->hqk", query, key, preferred_element_type=jnp.float32)
  return masked_softmax(scores * query.shape[-1] ** -0.5, mask[None])


def scaled_dot_product_attention(
  query: jax.Array,
  key: jax.Array,
  value: jax.Array,
  mask: jax.Array,
  dropout: Callable[[jax.Array], jax.Array] = _unchanged,
) -> jax.Array:
  r"""Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V, eq. 1, for every head.

  Args:
    query: Q, `[query, heads, d_k]`.
    key: K, `[key, heads, d_k]`.
    value: V, `[key, heads, d_v]`.
    mask: `[query, key]` booleans, true where the query may look.
    dropout: applied to the weights; §5.4 has none.

  Returns:
    `[query, heads, d_v]` in the type of `value`; 0 where the query may look at nothing.

  Example:
    A query that is equally like three keys gets the mean of the values that it may look at.

    >>> query, key = jnp.ones((1, 1, 4)), jnp.ones((3, 1, 4))
    >>> value = jnp.array([1.0, 3.0, 50.0]).reshape(3, 1, 1)
    >>> print(scaled_dot_product_attention(query, key, value, jnp.array([[True, True, False]])))
    [[[2.]]]
  """
  weights = dropout(attention_weights(query, key, mask)).astype(value.dtype)
  heads = jnp.einsum("hqk,khd->hqd", weights, value)
  return heads.swapaxes(0, 1)


def fused_attention(
  query: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array, implementation: Literal["cudnn", "xla"] = "cudnn"
) -> jax.Array:
  """`scaled_dot_product_attention` in one kernel, which never holds all weights.

  Args:
    query, key, value, mask: as in `scaled_dot_product_attention`, with d_k = d_v. cuDNN needs bfloat16 and even
      numbers of queries and keys.
    implementation: cuDNN's kernel, or the same formula in `jax.nn` on any device.

  Returns:
    The result of `scaled_dot_product_attention`.

  References:
    Dao 2023, FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning.
  """
  # Under `vmap` cuDNN's kernel takes no mask that heads share (https://github.com/jax-ml/jax/pull/34920).
  masks = jnp.broadcast_to(mask, (1, query.shape[1], *mask.shape))
  heads = jax.nn.dot_product_attention(query[None], key[None], value[None], mask=masks, implementation=implementation)
  return jnp.where(mask.any(axis=1)[:, None, None], heads[0], 0)  # the kernel gives the mean of the values there


class MultiHeadAttention(nn.Module):
  """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V) (§3.2.2).

  Keys and values come from one sequence, as everywhere in the paper. They may
  be computed (`keys_values`) before the queries that use them (`attend`).

  The weights `[heads, query, key]` are sown as `attention_weights` into the
  collection "intermediates", as Flax's own attention does. Unless the caller
  makes the collection mutable, nothing is sown.
  """

  config: ModelConfig

  def setup(self):
    config = self.config

    def projection(features, axis: int | tuple[int, ...] = -1) -> nn.DenseGeneral:
      return nn.DenseGeneral(
        features,
        axis=axis,
        use_bias=config.attention_bias,
        kernel_init=nn.initializers.glorot_uniform(),
        dtype=config.dtype.value,
        dot_general=shared_matmul.dot_general,
        promote_dtype=promote_operands,
      )

    self.query = projection((config.num_heads, config.head_dim_k))
    self.key = projection((config.num_heads, config.head_dim_k))
    self.value = projection((config.num_heads, config.head_dim_v))
    self.output = projection(config.d_model, axis=(-2, -1))
    self.dropout = Dropout(config.attention_dropout)

  def keys_values(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`[key, model]` -> `[key, heads, d_k]` and `[key, heads, d_v]`."""
    return self._of_type(self.key(x)), self._of_type(self.value(x))

  def attend(
    self, x: jax.Array, keys: jax.Array, values: jax.Array, mask: jax.Array, *, deterministic: bool
  ) -> jax.Array:
    """Queries from `x` `[query, model]` attend to the result of `keys_values` -> `[query, model]`."""

    def attention(module: "MultiHeadAttention", query: jax.Array, keys: jax.Array, values: jax.Array) -> jax.Array:
      return module._attention(query, keys, values, mask, deterministic)

    attention = nn.remat(attention) if self.config.remat is Remat.ATTENTION else attention
    heads = attention(self, self._of_type(self.query(x)), keys, values)
    return self._of_type(self.output(heads))  # Concat(head_1, ..., head_h) W^O

  def _attention(
    self, query: jax.Array, keys: jax.Array, values: jax.Array, mask: jax.Array, deterministic: bool
  ) -> jax.Array:
    """Eq. 1 for every head, by the function that suits the config and the machine: `[query, heads, d_v]`."""
    if self.config.fused_attention and not deterministic:
      return fused_attention(query, keys, values, mask)
    if not deterministic and self._in_blocks(len(query), len(keys)):
      return blocked_attention(query, keys, values, mask)

    def dropout(weights: jax.Array) -> jax.Array:
      self.sow("intermediates", WEIGHTS, weights)
      return self.dropout(weights, deterministic=deterministic)

    return scaled_dot_product_attention(query, keys, values, mask, dropout)

  def _of_type(self, x: jax.Array) -> jax.Array:
    """The result of a projection, which a bias makes float32."""
    return x.astype(self.config.dtype.value)

  def _in_blocks(self, queries: int, keys: int) -> bool:
    """Whether an update computes eq. 1 in blocks, which have no weights to drop or to show."""
    whole = self.config.attention_dropout > 0 or self.is_mutable_collection("intermediates")
    return not whole and suits(queries, keys)

  def __call__(self, x: jax.Array, inputs_kv: jax.Array, mask: jax.Array, *, deterministic: bool) -> jax.Array:
    """Queries from `x` `[query, model]`, keys and values from `inputs_kv` `[key, model]` -> `[query, model]`."""
    return self.attend(x, *self.keys_values(inputs_kv), mask, deterministic=deterministic)
