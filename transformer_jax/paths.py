"""Where the project keeps what it can make again."""

import os
from pathlib import Path


def user_cache() -> Path:
  """`$TRANSFORMER_JAX_CACHE`, or the user's cache folder by the XDG convention."""
  own = os.environ.get("TRANSFORMER_JAX_CACHE")
  if own:
    return Path(own)
  return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "transformer_jax"
