"""Additive attention (Bahdanau et al. 2015), which §3.2.1 sets beside dot-product attention."""

import jax
import jax.numpy as jnp

from transformer_jax.recurrent.attention import additive_score, attend


def additive_attention(query: jax.Array, key: jax.Array, value: jax.Array, weights: jax.Array) -> jax.Array:
  """softmax(score) V, score_ij = v^T tanh(q_i + k_j): a hidden layer for each pair of positions.

  Args:
    query: `[query, d_k]`, W s_i of the sequence that looks.
    key: `[key, d_k]`, U h_j of the sequence that is looked at.
    value: V, `[key, d_v]`.
    weights: v, `[d_k]`.

  Returns:
    `[query, d_v]`.
  """
  everything = jnp.ones(len(key), bool)
  return jax.vmap(lambda one: attend(additive_score(one, key, weights), everything, value))(query)
