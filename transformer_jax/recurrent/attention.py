"""Attention before the Transformer: one target state looks at the states of the source."""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Source(NamedTuple):
  """The source as attention needs it.

  Attributes:
    values: s_j or h_j, the states of the source, `[source, size]`.
    keys: the keys of the scores, `[source, key size]`; computed once.
  """

  values: jax.Array
  keys: jax.Array


def dot_score(query: jax.Array, keys: jax.Array) -> jax.Array:
  """h^T s_j: `[size]`, `[source, size]` -> float32 `[source]`.

  This is "dot" of Luong et al. 2015. With keys W_a s_j it is their "general", h^T W_a s_j.
  """
  return jnp.einsum("k,sk->s", query, keys, preferred_element_type=jnp.float32)


def additive_score(query: jax.Array, keys: jax.Array, v: jax.Array) -> jax.Array:
  """v^T tanh(q + k_j): `[size]`, `[source, size]`, `[size]` -> float32 `[source]`.

  In Bahdanau et al. 2015 q = W s_(i-1) and k_j = U h_j. In Luong et al. 2015 q and k_j are the two halves of their
  "concat", W [h; s_j].
  """
  return jnp.einsum("sk,k->s", jnp.tanh(query[None] + keys), v, preferred_element_type=jnp.float32)


def context(weights: jax.Array, values: jax.Array) -> jax.Array:
  """The context vector, sum_j weights_j values_j: `[source]`, `[source, size]` -> float32 `[size]`."""
  return jnp.einsum("s,sv->v", weights.astype(values.dtype), values, preferred_element_type=jnp.float32)
