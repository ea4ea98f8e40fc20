"""A folder in the format of another library, which may come from a stranger.

No link out of it is followed, no program in it is run, and each file has a limit to its size.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
from etils import epath

from transformer_jax.interchange import torch_file
from transformer_jax.interchange.settings import Settings
from transformer_jax.interchange.torch_file import TorchFile
from transformer_jax.runtime import tensor_file, untrusted
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.files import path_of
from transformer_jax.runtime.tensor_file import TensorFile

SAFETENSORS, TORCH = "model.safetensors", "pytorch_model.bin"
_FLOATS = ("F32", "F16", "BF16")  # every number of them is a float32 number


class Weights:
  """The arrays of an open file of parameters.

  Attributes:
    path: the file.
    shapes: the shape of each array by its name.
  """

  def __init__(self, path: epath.Path, file: TensorFile | TorchFile, names: Mapping[str, str] | None = None):
    self.path, self._file = path, file
    self._names = {name: name for name in file.shapes} if names is None else names
    self.shapes: Mapping[str, tuple[int, ...]] = {name: file.shapes[there] for name, there in self._names.items()}

  def under(self, names: Mapping[str, str]) -> "Weights":
    """The arrays under other names; `names` has the present name of each."""
    return Weights(self.path, self._file, {name: self._names[there] for name, there in names.items()})

  def type_of(self, name: str) -> str:
    """The type of an array's numbers, as safetensors name it: `F32`, for example."""
    return self._file.types[self._names[name]]

  def array(self, name: str) -> np.ndarray:
    """An array of float32.

    Raises:
      InputError: the file has numbers of another type.
    """
    if self.type_of(name) not in _FLOATS:
      raise InputError(f"{self.path}: {name} has numbers of the type {self.type_of(name)}, which is not {_FLOATS}")
    return np.array(self._file.array(self._names[name]), np.float32)  # a copy, as its memory is the file's

  def require(self, shapes: Mapping[str, tuple[int, ...]], others: Mapping[str, str] | None = None) -> None:
    """Checks the arrays' names and shapes, before one is read.

    Args:
      shapes: the shape of each array that the model has.
      others: arrays that may be there as well, each with the one that it must be equal to.

    Raises:
      InputError: one is missing, or has another shape, or is one too many.
    """
    for name, shape in shapes.items():
      if name not in self.shapes:
        raise InputError(f"{self.path} has no {name}, which a model of these sizes has: take all files from one folder")
      if self.shapes[name] != shape:
        raise InputError(
          f"{self.path}: {name} has shape {self.shapes[name]!s:.80}, but in a model of these sizes {shape}: "
          "take all files from one folder"
        )
    for name in self.shapes.keys() - shapes.keys():
      equal = (others or {}).get(name)
      if equal is None or self.shapes[name] != self.shapes.get(equal):
        raise InputError(f"{self.path} has {name[:80]!a}, which the model here does not have")
      if not np.array_equal(self.array(name), self.array(equal)):
        raise InputError(f"{self.path}: {name} is not equal to {equal}, but they are one array in the model here")


class ForeignFolder:
  """The folder.

  Raises:
    InputError: there is none.
  """

  def __init__(self, path: str | os.PathLike):
    if "://" in os.fspath(path):
      raise InputError(f"{path} is not on this machine: copy the folder here")
    self.path = path_of(os.path.abspath(os.path.expanduser(path)))
    if not self.path.is_dir():
      raise InputError(f"{self.path} is no folder: give the one with {SAFETENSORS} or {TORCH}")
    self._read: set[str] = set()

  def has(self, name: str) -> bool:
    """Whether a file is there.

    Raises:
      InputError: it is a link that leads out, or no file.
    """
    return untrusted.own_file(self.path, name) is not None

  def bytes(self, name: str, most: int) -> bytes:
    """A file's content.

    Raises:
      InputError: it is missing, cannot be read, or has more than `most` bytes.
    """
    if not self.has(name):
      raise InputError(f"{self.path} has no {name}, which the format needs: copy it there")
    self._read.add(name)
    try:
      return untrusted.read_bytes(self.path / name, most)
    except OSError as error:
      raise InputError(f"{self.path / name} cannot be read: {error.strerror}") from error

  def settings(self, name: str, *, optional: bool = False) -> Settings:
    """The object in a JSON file.

    Args:
      name: the file's name.
      optional: whether an empty object stands for a file that is not there.

    Raises:
      InputError: the file is missing or damaged.
    """
    path = self.path / name
    if optional and not self.has(name):
      return Settings(os.fspath(path), {})
    # `tokenizer_config.json` of many models has 10 ** 30 for a length without limit.
    values = untrusted.json_of(path, lambda: self.bytes(name, untrusted.LARGEST_JSON), digits=31)
    if not isinstance(values, dict):
      raise InputError(f"{path} is no object of settings: copy it again")
    return Settings(os.fspath(path), values)

  @contextmanager
  def weights(self) -> Iterator[Weights]:
    """The parameters: those of `model.safetensors`, or where that is not there of `pytorch_model.bin`.

    Raises:
      InputError: neither is there, or the file is damaged; also in the body of the `with` statement.
    """
    for name, module in ((SAFETENSORS, tensor_file), (TORCH, torch_file)):
      if self.has(name):
        path = self.path / name
        self._read.add(name)
        with module.opened(path) as file:
          yield Weights(path, file)
        return
    raise InputError(f"{self.path} has neither {SAFETENSORS} nor {TORCH}: put the file of the parameters there")

  def digests(self) -> dict[str, str]:
    """The SHA-256 of each file that was read so far."""
    found = {}
    for name in sorted(self._read):
      with (self.path / name).open("rb") as file:
        found[name] = hashlib.file_digest(file, "sha256").hexdigest()  # pyright: ignore[reportArgumentType]
    return found
