"""The layouts of a parameter here and in another library's file, and the way from one to the other and back.

A projection here is an array `[in, out]` in which `in` or `out` may be two axes, heads and head_dim. Most libraries
have a matrix `[out, in]`, GPT-2's `Conv1D` has `[in, out]`. The model's width can have another order there
(`marian_hf.halves`). Several parameters here can be the parts of one there. Both ways only move numbers, so that the
way there and back gives the same bits.
"""

import collections
import enum
import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np


class Layout(enum.Enum):
  """What the axes of a parameter are.

  Each value is the number of our leading axes that are inputs, which side is the model's width, and whether the other
  library has the outputs first.
  """

  VECTOR = (0, None, False)  # [out], or [heads, head_dim]
  MODEL_VECTOR = (0, "out", False)  # [model]
  TABLE = (1, "out", False)  # [vocab, model] on both sides
  FROM_MODEL = (1, "in", True)  # [model, ...] here, [..., model] there
  TO_MODEL = (-1, "out", True)  # [..., model] here, [model, ...] there
  CONV_FROM_MODEL = (1, "in", False)  # [model, ...] on both sides
  CONV_TO_MODEL = (-1, "out", False)  # [..., model] on both sides


class Name(NamedTuple):
  """A parameter in two libraries; `{}` in a name is the number of the layer.

  Parameters of ours with one name there are its equal parts along the last axis, in the order of the table.

  Attributes:
    ours: the name here, such as `encoder/layers_{}/attention/query/kernel`.
    theirs: the name there.
    layout: its axes.
  """

  ours: str
  theirs: str
  layout: Layout


def to_theirs(array: np.ndarray, layout: Layout, order: np.ndarray) -> np.ndarray:
  """A parameter of ours in the layout of the other library.

  Args:
    array: ours.
    layout: its axes.
    order: `[model]`, which of our dimensions is each of theirs.
  """
  leading, side, transposed = layout.value
  if not leading:
    vector = array.reshape(-1)
    return vector[order] if side else vector
  rows = int(np.prod(array.shape[:leading]))
  matrix = array.reshape(rows, -1)
  matrix = matrix[order] if side == "in" else matrix[:, order]
  return matrix.T if transposed else matrix


def to_ours(array: np.ndarray, layout: Layout, order: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
  """The inverse of `to_theirs`, for a parameter that has `shape` here."""
  leading, side, transposed = layout.value
  back = np.argsort(order)
  if not leading:
    return (array[back] if side else array).reshape(shape)
  matrix = array.T if transposed else array
  return (matrix[back] if side == "in" else matrix[:, back]).reshape(shape)


def of_layers(names: tuple[Name, ...], layers: int) -> list[Name]:
  """The names with the number of each layer in the places of `{}`."""
  return [
    Name(name.ours.format(layer), name.theirs.format(layer), name.layout) for layer in range(layers) for name in names
  ]


def linear(ours: str, theirs: str, layout: Layout) -> list[Name]:
  """The names of a matrix and its bias."""
  bias = Layout.MODEL_VECTOR if layout.value[1] == "out" else Layout.VECTOR
  return [Name(f"{ours}/kernel", f"{theirs}.weight", layout), Name(f"{ours}/bias", f"{theirs}.bias", bias)]


def layer_norm(ours: str, theirs: str) -> list[Name]:
  """The names of a layer normalisation."""
  return [
    Name(f"{ours}/scale", f"{theirs}.weight", Layout.MODEL_VECTOR),
    Name(f"{ours}/bias", f"{theirs}.bias", Layout.MODEL_VECTOR),
  ]


def renamed(arrays: Mapping[str, np.ndarray], names: list[Name], order: np.ndarray) -> dict[str, np.ndarray]:
  """Our arrays that are there, under the names and in the layouts of the other library."""
  parts: dict[str, list[np.ndarray]] = {}
  for ours, theirs, layout in names:
    if ours in arrays:
      parts.setdefault(theirs, []).append(to_theirs(arrays[ours], layout, order))
  return {name: np.ascontiguousarray(np.concatenate(found, axis=-1)) for name, found in parts.items()}


def shapes_there(shapes: Mapping[str, tuple[int, ...]], names: list[Name]) -> dict[str, tuple[int, ...]]:
  """The shape in the other library of each of our parameters, by its name there."""
  parts: dict[str, list[tuple[int, ...]]] = {}
  for ours, theirs, layout in names:
    if ours in shapes:
      parts.setdefault(theirs, []).append(_shape_there(shapes[ours], layout))
  return {name: (*found[0][:-1], sum(shape[-1] for shape in found)) for name, found in parts.items()}


def _shape_there(shape: tuple[int, ...], layout: Layout) -> tuple[int, ...]:
  leading, _, transposed = layout.value
  if not leading:
    return (math.prod(shape),)
  matrix = math.prod(shape[:leading]), math.prod(shape[leading:])
  return matrix[::-1] if transposed else matrix


def renamed_back(
  arrays: Mapping[str, np.ndarray], names: list[Name], order: np.ndarray, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, np.ndarray]:
  """The inverse of `renamed`, for our parameters of these shapes."""
  mine = [name for name in names if name.ours in shapes]
  parts = collections.Counter(name.theirs for name in mine)
  seen: collections.Counter[str] = collections.Counter()
  found = {}
  for ours, theirs, layout in mine:
    whole = arrays[theirs]
    width = whole.shape[-1] // parts[theirs]
    part = whole[..., seen[theirs] * width : (seen[theirs] + 1) * width]
    seen[theirs] += 1
    found[ours] = np.ascontiguousarray(to_ours(part, layout, order, shapes[ours]))
  return found
