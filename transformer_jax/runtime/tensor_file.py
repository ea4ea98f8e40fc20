"""Files of arrays in the format safetensors, which may come from an untrusted source.

Nothing in such a file is a program, and no array is read before its name, type and shape are known. The library checks
that the arrays fill the file exactly, so that none takes more memory than the file has bytes.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy
from etils import epath

from transformer_jax.runtime.errors import InputError, RunError, first_line, writing
from transformer_jax.runtime.untrusted import LARGEST_JSON, require_stored


class TensorFile:
  """An open file.

  Attributes:
    metadata: texts by name, as they are in the file.
    types: the type of each array, as the format names it: `F32` or `BF16`, for example.
    shapes: the shape of each array.
  """

  def __init__(self, handle: safetensors.safe_open):
    self._handle = handle
    self.metadata: dict[str, str] = handle.metadata() or {}
    names: list[str] = handle.keys()  # the handle is no dict
    headers = {name: handle.get_slice(name) for name in names}
    self.types: dict[str, str] = {name: header.get_dtype() for name, header in headers.items()}
    self.shapes: dict[str, tuple[int, ...]] = {name: tuple(header.get_shape()) for name, header in headers.items()}

  def array(self, name: str) -> np.ndarray:
    """A copy of one array."""
    return self._handle.get_tensor(name)


@contextmanager
def opened(path: epath.Path) -> Iterator[TensorFile]:
  """Opens a file to read.

  Raises:
    InputError: the file is not on this machine, cannot be read, or is damaged.
  """
  if "://" in os.fspath(path):
    raise InputError(f"{path} is not on this machine: copy its folder here")
  try:
    with path.open("rb") as file:
      length = int.from_bytes(file.read(8), "little")
    if length > LARGEST_JSON:
      raise InputError(f"{path} has a header of {length:,} bytes, which is not what such a file holds")
    require_stored(path)
    with safetensors.safe_open(path, framework="np") as handle:
      yield TensorFile(handle)
  except safetensors.SafetensorError as error:
    raise InputError(f"{path} is damaged, or not of the format safetensors: {first_line(error)}") from error
  except OSError as error:
    raise InputError(f"{path} cannot be read: {error.strerror or first_line(error)}") from error


def write(path: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
  """Writes a new file.

  Raises:
    RunError: the disk refuses it.
  """
  contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
  with writing(path):
    path.touch(exist_ok=False)
    mode = path.stat().st_mode  # the library lets the owner alone read what it writes
    try:
      safetensors.numpy.save_file(contiguous, path, dict(metadata))
    except safetensors.SafetensorError as error:
      raise RunError(f"cannot write {path}: {first_line(error)}") from error
    path.chmod(mode)
