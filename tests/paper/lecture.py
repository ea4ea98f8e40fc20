"""`docs/lecture.md`, read by the tests of its rows, and one head of attention."""

import re
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

from transformer_jax.model.attention import attention_weights

DOCS = Path(__file__).parents[2] / "docs" / "lecture.md"
# Not a part of a name, such as W_1 and 4d, and not an exponent.
_NUMBER = re.compile(r"(?<![\w.^])(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?:e-\d+)?(?!\w)")
_weights = jax.jit(attention_weights)  # compiles faster as a whole


def assert_documented(test: Callable[..., None], verdict: str, numbers: str) -> None:
  """The row of a test has this verdict, and these numbers in its claim and correction, in this order."""
  rows = [line for line in DOCS.read_text().splitlines() if f"::{test.__name__}`" in line]
  assert len(rows) == 1
  claim, found, correction, _ = (cell.strip() for cell in rows[0].split("|")[1:-1])
  documented = _NUMBER.findall(f"{claim} {correction}")
  assert (found, documented) == (verdict, numbers.split()), f"the page has {found}, {' '.join(documented)}"


def decimals(values: np.ndarray | list[float], digits: int) -> str:
  """The values as the page has them, such as `.250 1.000`."""
  return " ".join(f"{value:.{digits}f}".removeprefix("0") for value in np.ravel(values))


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
