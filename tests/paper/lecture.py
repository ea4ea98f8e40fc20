"""What the tests of `docs/lecture.md` share: its rows, and one head of attention."""

import functools

import jax
import numpy as np

from tests.paper import documented
from transformer_jax.model.attention import attention_weights

PAGE = "lecture.md"
assert_documented = functools.partial(documented.assert_documented, PAGE)
_weights = jax.jit(attention_weights)  # compiles faster as a whole


def one_head(query: np.ndarray, key: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
  """Weights `[query, key]` of queries `[query, d_k]` and keys `[key, d_k]`."""
  mask = np.ones((len(query), len(key)), bool) if mask is None else mask
  return np.asarray(_weights(np.float32(query)[:, None], np.float32(key)[:, None], mask)[0])


def weights_of_products(products: np.ndarray, d_k: int, mask: np.ndarray | None = None) -> np.ndarray:
  """The weights of queries and keys of this d_k that have these products, `[query, key]`."""
  keys = products.shape[1]
  query, key = np.pad(products, ((0, 0), (0, d_k - keys))), np.eye(keys, d_k)
  np.testing.assert_array_equal(query @ key.T, products)
  return one_head(query, key, mask)
