"""Checks of the arrays of a checkpoint, which may come from an untrusted source, before they take memory or time."""

import os
from collections.abc import Mapping

from etils import epath

from transformer_jax.runtime.untrusted import LARGEST_JSON, is_too_much, stored
from transformer_jax.runtime.values import Json


class ModelMismatch(ValueError):
  """The arrays of a checkpoint are not those of the config's model."""


def require_layers(model: Mapping[str, Json], arrays: int) -> None:
  """Raises ModelMismatch if a config's model has more layers than a checkpoint has arrays: making them takes long."""
  for name, value in model.items():
    if "layers" in name and isinstance(value, int) and value > arrays:
      raise ModelMismatch(f"config.model.{name} is {value}, but there are only {arrays} arrays")


def require_names(expected: Mapping[str, object], found: Mapping[str, object], where: str) -> None:
  """Raises ModelMismatch unless the arrays of the model and of `where` have the same names."""
  if expected.keys() != found.keys():
    name = min(expected.keys() ^ found.keys())
    raise ModelMismatch(f"{name} is only in the {'model' if name in expected else where}")


def size_on_disk(folder: epath.Path) -> int:
  """The bytes of all files of an item of a checkpoint.

  Raises:
    ValueError: a file of metadata is too large, nearly all of a file is a hole, or a folder is a link; the message
      names it.
  """
  total = 0
  for path in folder.iterdir():
    if path.is_dir() and os.path.islink(path):  # many of them could be counted again and again
      raise ValueError(f"{path.name} is a link to a folder")
    is_folder = path.is_dir()
    size = size_on_disk(path) if is_folder else path.stat().length
    if size > LARGEST_JSON and (path.name.startswith("_") or folder.name == "array_metadatas"):
      raise ValueError(f"{path.name} has more than {LARGEST_JSON:,} bytes")
    data = size if is_folder else stored(path)
    if is_too_much(size, data):  # TensorStore reads some files as a whole
      raise ValueError(f"{path.name} has {size:,} bytes, but only {data:,} of them are data")
    total += data
  return total


def require_arrays(expected: Mapping[str, Json], found: Mapping[str, Json], size_on_disk: int) -> None:
  """Raises ValueError unless a checkpoint's arrays match the model, and its files are large enough for them.

  It is `ModelMismatch` if they have other names, shapes or types.

  Args:
    expected: the shape and dtype of each of the model's arrays, by name.
    found: the shape, dtype and `storage.chunk_shape` of each of the checkpoint's arrays, from the arrays' headers.
    size_on_disk: the bytes of all files of the checkpoint's arrays.
  """
  require_names(expected, found, "checkpoint")
  size = 0
  for name, array in expected.items():
    shape, dtype = tuple(found[name].shape), found[name].dtype
    if shape != array.shape or dtype != array.dtype:
      raise ModelMismatch(f"{name} has shape {shape} and type {dtype}, but the model's {array.shape} and {array.dtype}")
    chunk = tuple(found[name].storage.chunk_shape)
    if len(chunk) != len(shape) or any(part > whole for part, whole in zip(chunk, shape, strict=True)):
      raise ValueError(f"{name} has shape {shape}, but is stored in parts of {chunk}")
    size += array.size * array.dtype.itemsize
  if is_too_much(size, size_on_disk):
    raise ValueError(f"its arrays would take {size:,} bytes, but its files have only {size_on_disk:,}")
