"""The type of a model's parameters."""

from typing import Any

# A tree of float32 arrays, by the names of the modules. Each model has another tree, so the type says no more.
Params = Any
