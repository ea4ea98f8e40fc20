"""PyTorch's files of parameters, such as `pytorch_model.bin`, which may come from an untrusted source.

Such a file has a pickle, which could run any program; `torch_pickle.py` reads it without running it. The numbers of the
arrays are in the same file: in a zip archive that is not compressed, or, before PyTorch 1.6, one after the other.
https://docs.pytorch.org/docs/stable/notes/serialization.html describes the archive.
"""

import functools
import io
import math
import mmap
import struct
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

import numpy as np
from etils import epath

from transformer_jax.interchange.torch_pickle import TYPES, Array, Damaged, Storage, unpickled
from transformer_jax.runtime.errors import InputError, first_line
from transformer_jax.runtime.untrusted import require_stored

# The most bytes of the pickle, whose values in memory are up to 64 times as large, and of what is read at a time.
_LARGEST_PICKLE, _LARGEST = 1 << 20, 1 << 22
_MAGIC, _PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
# Several names may stand for one array, such as an embedding that is the output layer, too.
_NAMES_OF_AN_ARRAY = 4


class TorchFile:
  """An open file, as `tensor_file.TensorFile` is one.

  Attributes:
    types: the type of each array, as the format safetensors names it: `F32` or `BF16`, for example.
    shapes: the shape of each array.
  """

  def __init__(self, arrays: dict[str, Array], read: Callable[[Storage], np.ndarray]):
    # Arrays of one storage follow one another, as in a flat buffer of all parameters.
    self._arrays, self._read = arrays, functools.lru_cache(maxsize=1)(read)
    self.types: dict[str, str] = {name: TYPES[array.storage.kind][0] for name, array in arrays.items()}
    self.shapes: dict[str, tuple[int, ...]] = {name: array.shape for name, array in arrays.items()}

  def array(self, name: str) -> np.ndarray:
    """One array."""
    array = self._arrays[name]
    numbers = self._read(array.storage)[array.offset :]
    strides = [stride * numbers.itemsize for stride in array.strides]
    return np.lib.stride_tricks.as_strided(numbers, array.shape, strides, writeable=False)


@contextmanager
def opened(path: epath.Path) -> Iterator[TorchFile]:
  """Opens a file to read.

  Raises:
    InputError: the file cannot be read, is damaged, or holds something else than named arrays.
  """
  try:
    require_stored(path)
    with path.open("rb") as file:
      size = file.seek(0, io.SEEK_END)
      file.seek(0)
      if file.read(4) == b"PK\x03\x04":
        yield _archive(file, size)
      elif not size:  # which cannot be mapped
        raise Damaged("it is empty")
      else:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
          yield _one_after_the_other(content)
  except (Damaged, zipfile.BadZipFile, EOFError, NotImplementedError, UnicodeError, struct.error) as error:
    raise InputError(
      f"{path} is damaged, or holds something else than arrays: {first_line(error)}; copy it again, or save the "
      "parameters as model.safetensors"
    ) from error
  except OSError as error:
    raise InputError(f"{path} cannot be read: {error.strerror or first_line(error)}") from error


class _Parts:
  """A file for the library of zip archives, which would believe any length that the archive names."""

  def __init__(self, file: IO[bytes]):
    self._file = file

  def read(self, count: int = -1) -> bytes:
    if count > _LARGEST:
      raise Damaged("a part is too long")
    return self._file.read(_LARGEST if count < 0 else count)

  def seek(self, offset: int, whence: int = 0) -> int:
    if offset > sys.maxsize:
      raise Damaged("a part is behind the end of the file")
    return self._file.seek(offset, whence)

  def tell(self) -> int:
    return self._file.tell()

  def seekable(self) -> bool:
    return True


def _archive(file: IO[bytes], size: int) -> TorchFile:
  archive = zipfile.ZipFile(_Parts(file))  # pyright: ignore[reportArgumentType, reportCallIssue]
  members = {member.filename: member for member in archive.infolist()}
  names = [name for name in members if name.count("/") == 1 and name.endswith("/data.pkl")]
  if len(names) != 1:
    raise Damaged("it has no data.pkl")
  [name] = names
  folder = name.removesuffix("data.pkl")
  if members.get(f"{folder}byteorder") and _member(archive, members[f"{folder}byteorder"], 16) != b"little":
    raise Damaged("its numbers are not little endian")
  arrays = _arrays(unpickled(io.BytesIO(_member(archive, members[name], _LARGEST_PICKLE))), size)

  def read(storage: Storage) -> np.ndarray:
    member = members.get(f"{folder}data/{storage.key}")
    if member is None or member.file_size < storage.bytes_:
      raise Damaged(f"the numbers of {storage.key} are missing")
    return np.frombuffer(_member(archive, member, size), storage.dtype, storage.size)

  return TorchFile(arrays, read)


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> bytes:
  """The content of a member, which the library compares with its checksum."""
  if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
    raise Damaged("it is compressed")
  if member.file_size > most or member.file_size != member.compress_size:
    raise Damaged("a part is too long")
  with archive.open(member) as file:
    return b"".join(iter(lambda: file.read(_LARGEST), b""))


def _one_after_the_other(content: mmap.mmap) -> TorchFile:
  head = io.BytesIO(content[:_LARGEST_PICKLE])
  if unpickled(head) != _MAGIC or unpickled(head) != _PROTOCOL:
    raise Damaged("PyTorch does not write such a file")
  machine = unpickled(head)
  if not isinstance(machine, dict) or machine.get("little_endian") is not True:
    raise Damaged("its numbers are not little endian")
  arrays, keys, place = _arrays(unpickled(head), len(content)), unpickled(head), head.tell()
  storages = {array.storage.key: array.storage for array in arrays.values()}
  begins: dict[str, int] = {}
  if not isinstance(keys, list) or not all(isinstance(key, str) and key in storages for key in keys):
    raise Damaged("its list of arrays is damaged")
  for key in keys:
    storage = storages[key]
    if int.from_bytes(content[place : place + 8], "little") != storage.size:
      raise Damaged(f"the numbers of {key} are missing")
    begins[key] = place + 8
    place = begins[key] + storage.bytes_

  def read(storage: Storage) -> np.ndarray:
    begin = begins.get(storage.key, len(content))
    numbers = content[begin : begin + storage.bytes_]
    if len(numbers) != storage.bytes_:
      raise Damaged(f"the numbers of {storage.key} are missing")
    return np.frombuffer(numbers, storage.dtype)

  return TorchFile(arrays, read)


def _arrays(values: object, file_size: int) -> dict[str, Array]:
  """The named arrays of a pickle's value, checked against the storages that they are views of."""
  if not isinstance(values, dict):
    raise Damaged("it holds no dict of arrays")
  storages: dict[str, Storage] = {}
  for name, array in values.items():
    if not isinstance(name, str) or not isinstance(array, Array):
      raise Damaged("it holds something that is no array")
    if storages.setdefault(array.storage.key, array.storage) != array.storage:
      raise Damaged(f"{array.storage.key} has two sizes")
    _require_inside(array)
  stored = sum(storage.bytes_ for storage in storages.values())
  seen = sum(math.prod(array.shape) * array.storage.dtype.itemsize for array in values.values())
  if stored > file_size or seen > _NAMES_OF_AN_ARRAY * file_size:
    raise Damaged(f"its arrays would have {max(stored, seen):,} bytes")
  return values


def _require_inside(array: Array) -> None:
  last = array.offset + sum((size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True))
  if math.prod(array.shape) > array.storage.size or (0 not in array.shape and last >= array.storage.size):
    raise Damaged(f"an array of shape {array.shape} is larger than its storage")
