"""Where the project keeps what it can make again, and how it replaces a file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_jax.errors import writing

if TYPE_CHECKING:  # the command line's help must not wait for it
  from etils import epath


def user_cache() -> Path:
  """`$TRANSFORMER_JAX_CACHE`, or the user's cache folder by the XDG convention."""
  own = os.environ.get("TRANSFORMER_JAX_CACHE")
  if own:
    return Path(own)
  return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "transformer_jax"


def write_atomically(path: "epath.Path | Path", content: bytes) -> None:
  """Replaces a file as a whole, so that a reader never sees half of it.

  Raises:
    RunError: the disk refuses it; the file is as it was.
  """
  temporary = path.parent / f".{path.name}.tmp"
  with writing(path):
    try:
      temporary.write_bytes(content)
      temporary.replace(path)
    except OSError:
      temporary.unlink(missing_ok=True)
      raise
