"""Names for values whose types cannot be narrower."""

from typing import Any

# A pytree of JAX, mostly of arrays: its structure depends on the model. `model.params.Params` is one of parameters.
PyTree = Any
# A value as `json` reads it: the reader checks what it is.
Json = Any
JsonObject = dict[str, Json]
