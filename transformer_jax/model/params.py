"""The type of a model's parameters, and their names."""

from typing import Any

import jax

# A tree of float32 arrays, by the names of the modules. Each model has another tree, so the type says no more.
Params = Any


def by_name(tree: Any) -> dict[str, Any]:
  """The leaves, such as `decoder/layers_0/norm/scale`, for trees of dicts as for those of classes."""
  return {
    "/".join(str(getattr(key, "name", getattr(key, "key", getattr(key, "idx", key)))) for key in path): leaf
    for path, leaf in jax.tree.leaves_with_path(tree)
  }
