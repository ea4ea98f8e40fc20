"""The pickle in PyTorch's files of parameters, read without running it.

A small machine takes the opcodes of plain values: texts, numbers, tuples, lists and dicts. Of the names that the pickle
would import and call, it knows the few that stand for arrays. Every other opcode and every other name is an error.
`pickletools` of the standard library splits the opcodes from each other, and runs none.
"""

import pickletools
import warnings
from collections.abc import Callable
from typing import Any, BinaryIO, ClassVar, NamedTuple

import ml_dtypes
import numpy as np

from transformer_jax.runtime.errors import first_line

Value = Any  # what a pickle may hold
_MOST_AXES = 8  # of an array; those of the models here have at most three

TYPES: dict[str, tuple[str, Value]] = {
  "FloatStorage": ("F32", np.float32),
  "HalfStorage": ("F16", np.float16),
  "BFloat16Storage": ("BF16", ml_dtypes.bfloat16),
  "DoubleStorage": ("F64", np.float64),
  "LongStorage": ("I64", np.int64),
  "IntStorage": ("I32", np.int32),
  "BoolStorage": ("BOOL", np.bool_),
  "ByteStorage": ("U8", np.uint8),
}


class _Name(NamedTuple):
  """A name that the pickle would import."""

  module: str
  name: str


class Storage(NamedTuple):
  """Numbers of the file."""

  kind: str
  key: str
  size: int

  @property
  def dtype(self) -> np.dtype:
    return np.dtype(TYPES[self.kind][1])

  @property
  def bytes_(self) -> int:
    return self.size * self.dtype.itemsize


class Array(NamedTuple):
  """A view of a storage."""

  storage: Storage
  offset: int
  shape: tuple[int, ...]
  strides: tuple[int, ...]


class Damaged(Exception):
  """The file is not what PyTorch writes of a model's parameters."""


_MARK = object()


def unpickled(file: BinaryIO) -> Value:
  """The value of a pickle that makes nothing but plain values and arrays."""
  machine = _Machine()
  try:
    with warnings.catch_warnings(action="ignore"):  # about texts that it splits off
      for opcode, argument, _ in pickletools.genops(file):
        if opcode.name == "STOP":
          return machine.pop()
        machine.step(opcode.name, argument)
  except Damaged:
    raise
  except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
    raise Damaged(f"its pickle is damaged: {first_line(error)}") from error
  raise Damaged("its pickle has no end")


class _Machine:
  """The stack and the memo of a pickle, for the opcodes of plain values."""

  _VALUES = frozenset(("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE"))
  _CONSTANTS: ClassVar[dict[str, Callable[[], Any]]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "MARK": lambda: _MARK,
  }

  def __init__(self):
    self._stack: list[Value] = []
    self._memo: dict[int, Value] = {}

  def pop(self) -> Value:
    if not self._stack or self._stack[-1] is _MARK:
      raise Damaged("its pickle is damaged: a value is missing")
    return self._stack.pop()

  def step(self, name: str, argument: Value) -> None:
    """Takes one opcode."""
    if name in self._VALUES:
      self._stack.append(argument)
    elif name in self._CONSTANTS:
      self._stack.append(self._CONSTANTS[name]())
    elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
      self._stack.append(tuple([self.pop() for _ in range(int(name[-1]))][::-1]))
    elif name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
      self._memo[len(self._memo) if argument is None else argument] = self._top()
    elif name in ("BINGET", "LONG_BINGET"):
      self._stack.append(self._memo[argument])
    elif name == "GLOBAL":
      self._stack.append(_Name(*argument.split(" ", 1)))
    elif name in ("PROTO", "FRAME"):
      pass
    elif (own := getattr(self, f"_{name.lower()}", None)) is not None:
      own()
    else:
      raise Damaged(f"its pickle has the opcode {name}, which no file of arrays needs")

  def _top(self) -> Value:
    value = self.pop()
    self._stack.append(value)
    return value

  def _marked(self) -> list[Value]:
    """The values down to the last mark."""
    values: list[Value] = []
    while self._stack and self._stack[-1] is not _MARK:
      values.append(self._stack.pop())
    if not self._stack:
      raise Damaged("its pickle is damaged: a mark is missing")
    self._stack.pop()
    return values[::-1]

  def _tuple(self) -> None:
    self._stack.append(tuple(self._marked()))

  def _append(self) -> None:
    value = self.pop()
    _expect(self._top(), list).append(value)

  def _appends(self) -> None:
    values = self._marked()
    _expect(self._top(), list).extend(values)

  def _setitem(self) -> None:
    value, key = self.pop(), self.pop()
    _expect(self._top(), dict)[_expect(key, (str, int))] = value

  def _setitems(self) -> None:
    values = self._marked()
    target = _expect(self._top(), dict)
    for key, value in zip(values[::2], values[1::2], strict=True):
      target[_expect(key, (str, int))] = value

  def _stack_global(self) -> None:
    name, module = self.pop(), self.pop()
    self._stack.append(_Name(_expect(module, str), _expect(name, str)))

  def _build(self) -> None:
    """Attributes of the dict of arrays, which say nothing about the arrays."""
    self.pop()
    _expect(self._top(), dict)

  def _binpersid(self) -> None:
    """A storage: ("storage", its class, its key, the device, its size)."""
    kind, name, key, device, size, *rest = _expect(self.pop(), tuple)
    if kind != "storage" or not isinstance(name, _Name) or name.module != "torch" or name.name not in TYPES:
      raise Damaged(f"its pickle has {_short(name)}, which is no array of a known type")
    if any(value is not None for value in rest) or not isinstance(device, str):
      raise Damaged("an array is a part of another")
    self._stack.append(Storage(name.name, _expect(key, str), _size(size)))

  def _reduce(self) -> None:
    """What the pickle would call."""
    arguments, name = _expect(self.pop(), tuple), self.pop()
    if name == ("collections", "OrderedDict") and not arguments:
      self._stack.append({})
    elif name == ("torch._utils", "_rebuild_tensor_v2"):
      storage, offset, shape, strides, *_ = arguments
      axes = {len(_expect(shape, tuple)), len(_expect(strides, tuple))}
      if not isinstance(storage, Storage) or len(axes) > 1 or max(axes) > _MOST_AXES:
        raise Damaged("an array is damaged")
      self._stack.append(Array(storage, _size(offset), tuple(map(_size, shape)), tuple(map(_size, strides))))
    elif name == ("torch._utils", "_rebuild_parameter") and isinstance(arguments[0], Array):
      self._stack.append(arguments[0])
    else:
      raise Damaged(f"its pickle would call {_short(name)}, which no file of arrays needs")


def _expect(value: Value, kind: Value) -> Value:
  if not isinstance(value, kind) or isinstance(value, _Name | Storage | Array):
    raise Damaged("its pickle is damaged: a value has another type")
  return value


def _size(value: Value) -> int:
  if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 48:
    raise Damaged("an array is damaged: a size is no whole number of a usual size")
  return value


def _short(value: Value) -> str:
  text = f"{value.module}.{value.name}" if isinstance(value, _Name) else type(value).__name__  # it may be endless
  return text[:80]
