"""The tables of embeddings: word vectors in their rows at the start, and tables that training does not change."""

import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax.data.word_vectors import WordVectors
from transformer_jax.model.params import Params, map_by_name
from transformer_jax.runtime.errors import InputError


def is_table(name: str) -> bool:
  """Whether a parameter is a table of the tokens' embeddings.

  These are `target_embedding/table`, `own_source_embedding/table`, `embedding/table` and, of BERT,
  `trunk/embedding/table`. A separate output layer, and tables of positions and of token types, are none.
  """
  return name.endswith("embedding/table")


def tables(params: Params) -> Params:
  """The tree of `params` with True for each table of embeddings and False elsewhere, as `optax.masked` takes it.

  Raises:
    InputError: there is none, as the model is of another package and names it otherwise.
  """
  found = map_by_name(lambda name, _: is_table(name), params)
  if not any(jax.tree.leaves(found)):
    raise InputError(
      "config.train.embeddings and config.train.freeze_embeddings need a model with a parameter `embedding/table`, and "
      "this model has none: leave both out"
    )
  return found


def with_vectors(params: Params, found: WordVectors) -> Params:
  """`params` with word vectors in the rows of their pieces, in each table of embeddings.

  Both languages share one vocabulary. So separate tables for source and target get the same vectors. All vectors are
  multiplied by one number, so that the mean root-mean-square of a vector is that of a random row of the table:

      E[p] = s w_p,    s = mean over rows i of rms(E[i]) / mean over pieces p of rms(w_p)

  Args:
    params: random parameters.
    found: the vectors w_p, as many numbers each as a row of the tables.

  Raises:
    InputError: the model has no such table, or all vectors are 0.
  """
  size = mean_rms(found.vectors)
  if size == 0:
    raise InputError("config.train.embeddings: all vectors of the vocabulary's tokens are 0; choose other vectors")

  def put(leaf: jax.Array, replaced: bool) -> jax.Array:
    if not replaced:
      return leaf
    scaled = (mean_rms(leaf) / size * found.vectors).astype(np.float32)
    return jnp.asarray(leaf).at[found.pieces].set(scaled)

  return jax.tree.map(put, params, tables(params))


def mean_rms(rows: jax.Array | np.ndarray) -> float:
  """The mean over the rows of the root of the mean square: `[rows, model]` -> a number."""
  return float(np.mean(np.sqrt(np.mean(np.square(np.asarray(rows, np.float64)), axis=1))))
