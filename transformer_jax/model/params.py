"""The type of a model's parameters, and their names."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.tree_util import KeyPath, keystr

from transformer_jax.runtime.values import PyTree

# A tree of float32 arrays, by the names of the modules. Each model has another tree, so the type says no more.
Params = PyTree


def by_name(tree: PyTree) -> dict[str, PyTree]:
  """The leaves, such as `decoder/layers_0/self_sublayer/norm/scale`, for trees of dicts as for those of classes."""
  return {_name(path): leaf for path, leaf in jax.tree.leaves_with_path(tree)}


def map_by_name(function: Callable[[str, Any], Any], tree: PyTree) -> PyTree:
  """The tree of `function(name, leaf)`, with the names of `by_name`."""
  return jax.tree.map_with_path(lambda path, leaf: function(_name(path), leaf), tree)


def _name(path: KeyPath) -> str:
  return keystr(path, simple=True, separator="/")


def numpy_by_name(params: Params) -> dict[str, np.ndarray]:
  """The parameters, which may be on a device, as arrays of NumPy."""
  return {name: np.asarray(leaf) for name, leaf in by_name(jax.device_get(params)).items()}
