"""Attention before the Transformer: one target state looks at the states of the source."""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Source(NamedTuple):
  """The source as attention needs it.

  Attributes:
    values: the states of the source, `[source, size]`: h_j in Bahdanau et al., h-bar_s in Luong et al. (here hs_j).
    keys: the keys of the scores, `[source, key size]`; computed once.
  """

  values: jax.Array
  keys: jax.Array


def dot_score(query: jax.Array, keys: jax.Array) -> jax.Array:
  """h_t^T hs_j: `[size]`, `[source, size]` -> float32 `[source]`.

  This is "dot" of Luong et al. 2015. With keys W_a hs_j it is their "general", h_t^T W_a hs_j.
  """
  return jnp.einsum("k,sk->s", query, keys, preferred_element_type=jnp.float32)


def additive_score(query: jax.Array, keys: jax.Array, v: jax.Array) -> jax.Array:
  """v^T tanh(q + k_j): `[size]`, `[source, size]`, `[size]` -> float32 `[source]`.

  In Bahdanau et al. 2015 q = W_a s_(i-1) and k_j = U_a h_j. In Luong et al. 2015 q and k_j are the two halves of their
  "concat", W_a [h_t; hs_j].
  """
  return jnp.einsum("sk,k->s", jnp.tanh(query[None] + keys), v, preferred_element_type=jnp.float32)


def context_vector(weights: jax.Array, values: jax.Array) -> jax.Array:
  """The context vector, sum_j weights_j values_j: `[source]`, `[source, size]` -> float32 `[size]`."""
  return jnp.einsum("s,sv->v", weights.astype(values.dtype), values, preferred_element_type=jnp.float32)
