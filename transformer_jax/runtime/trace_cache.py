"""The cache of traced programs on disk, beside that of compiled ones.

JAX looks a compiled program up by its lowered form. So a start has to trace and lower a program, only to read what was
compiled before. This cache has the lowered form, as `jax.export` writes it. The name of an entry is the digest of all
that tracing reads: the package's code, the versions of the libraries, JAX's settings, the devices, the shapes of the
arguments, and a key that the caller gives. The folder is in the user's own cache, never in a run folder, which may be a
stranger's.

The code in memory must be that of the files. So nothing is read or written if a file of the package is younger than the
process, or was changed in the minute before it.
"""

import functools
import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from transformer_jax.runtime import devices
from transformer_jax.runtime.errors import RunError
from transformer_jax.runtime.files import write_atomically
from transformer_jax.runtime.process import cores
from transformer_jax.runtime.values import PyTree

if TYPE_CHECKING:
  from jax import export

_PACKAGE = Path(__file__).resolve().parents[1]
_LIBRARIES = ("jax", "jaxlib", "flax", "optax", "numpy")
_UNCHANGED_SINCE = time.time() - 60
_MOST = 200  # entries; the one that was not used for the longest time goes first
_DIGEST = hashlib.sha256().digest_size

_folder: Path | None = None


def use(folder: Path | None) -> None:
  """Keeps traced programs in this folder from now on; None keeps none, as before the first call."""
  global _folder
  _folder = folder


def kept(function: Callable, key: str, result: Callable[..., PyTree], *, donate_state: bool = False) -> Callable:
  """`function`, whose traced form is read from the disk if an earlier process has left it there.

  Without a folder or with several devices this is `function` itself.

  Args:
    function: of trees of arrays, compiled or not.
    key: tells all that tracing reads besides what this file knows.
    result: (arguments) -> a tree with the structure of the result.
    donate_state: whether the result may reuse the memory of the first argument.
  """
  return function if _folder is None or devices.device_count() > 1 else _Kept(function, key, result, donate_state)


class _Kept:
  """The function that `kept` returns; it can be called and lowered like a compiled function."""

  def __init__(self, function: Callable, key: str, result: Callable[..., PyTree], donate_state: bool):
    self._function, self._key, self._result, self._donate_state = function, key, result, donate_state
    self._programs: dict[str, tuple[jax.stages.Wrapped, Any]] = {}
    self._lock = threading.Lock()  # threads that need one program at the same time must not each trace it

  def __call__(self, *arguments: PyTree) -> PyTree:
    program, structure = self._program(arguments)
    return jax.tree.unflatten(structure, program(*_leaves(arguments)))

  def lower(self, *arguments: PyTree) -> jax.stages.Lowered:
    """The lowered program of arguments with these shapes, which a call then uses."""
    return self._program(arguments)[0].lower(*_leaves(arguments))

  def _program(self, arguments: Sequence[PyTree]) -> tuple[jax.stages.Wrapped, Any]:
    """The compiled function and its result's structure.

    The function takes the leaves of the first argument and those of the others, and returns the leaves of the result.
    """
    structure = jax.tree.structure(arguments)
    shapes = f"{structure} {[(x.shape, x.dtype) for x in jax.tree.leaves(arguments)]}"
    with self._lock:
      if shapes not in self._programs:
        self._programs[shapes] = self._made(arguments, structure, shapes)
      return self._programs[shapes]

  def _made(self, arguments: Sequence[PyTree], structure: Any, shapes: str) -> tuple[jax.stages.Wrapped, Any]:
    of_result = jax.tree.structure(self._result(*arguments))

    def of_leaves(first: list[jax.Array], others: list[jax.Array]) -> list[jax.Array]:
      result = self._function(*jax.tree.unflatten(structure, first + others))
      assert jax.tree.structure(result) == of_result
      return jax.tree.leaves(result)

    exported = _exported(of_leaves, f"{self._key} {shapes}", _leaves(arguments))
    # With another placement, a state that is an argument of the next call would have the program compiled twice.
    placement = devices.on_all_devices()
    donated = (0,) if self._donate_state else ()
    return jax.jit(exported.call, out_shardings=placement, donate_argnums=donated), of_result


def _leaves(arguments: Sequence[PyTree]) -> tuple[list[jax.Array], list[jax.Array]]:
  """The leaves of the first argument, and those of the others."""
  return jax.tree.leaves(arguments[0]), jax.tree.leaves(arguments[1:])


def kept_shapes(function: Callable, key: str) -> PyTree:
  """`jax.eval_shape(function)`, a tree of dictionaries, read from the disk if an earlier process has left it there."""
  if (found := _read(key)) is not None:
    shapes = json.loads(found)
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(*leaf), shapes, is_leaf=lambda x: isinstance(x, list))
  shapes = jax.eval_shape(function)
  _write(key, json.dumps(jax.tree.map(lambda x: [x.shape, x.dtype.name], shapes)).encode())
  return shapes


def kept_number(function: Callable[[], int], key: str) -> int:
  """`function()`, which traces, read from the disk if an earlier process has left it there."""
  if (found := _read(key)) is None:
    found = str(function()).encode()
    _write(key, found)
  return int(found)


def is_own(*objects: object) -> bool:
  """Whether all functions and objects are of this package's modules, whose code is part of the digest."""
  return all(is_own_module(getattr(each, "__module__", "")) for each in objects)


def is_own_module(name: str) -> bool:
  """Whether the module with this name is of this package."""
  return name.split(".")[0] == __name__.split(".")[0]


def _exported(function: Callable, key: str, arguments: Sequence[PyTree]) -> "export.Exported":
  """The traced function, read from the disk or traced and left there."""
  from jax import export

  if (found := _read(key)) is not None:
    return export.deserialize(bytearray(found))
  shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), arguments)
  exported = export.export(jax.jit(function))(*shapes)
  _write(key, bytes(exported.serialize()))
  return exported


def _read(key: str) -> bytes | None:
  """What an earlier process wrote under this key; None if there is nothing, or it is damaged."""
  if (path := _path(key)) is None:
    return None
  try:
    content = path.read_bytes()
    os.utime(path)  # it was used
  except OSError:
    return None
  found = content[_DIGEST:]
  return found if content[:_DIGEST] == hashlib.sha256(found).digest() else None


def _write(key: str, content: bytes) -> None:
  """Keeps `content` under this key, if it can be kept."""
  if (path := _path(key)) is None:
    return
  try:
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, hashlib.sha256(content).digest() + content)
    for old in sorted(path.parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)[_MOST:]:
      old.unlink(missing_ok=True)
  except (OSError, RunError):  # a full disk, or another process deletes the same entry
    pass


def _path(key: str) -> Path | None:
  """The file of an entry; None if nothing is kept."""
  if _folder is None:
    return None
  try:
    if any(file.stat().st_mtime > _UNCHANGED_SINCE for file in _files()):
      return None
    return _folder / hashlib.sha256(f"{_surroundings()} {key}".encode()).hexdigest()
  except OSError:  # the package is being replaced
    return None


def _surroundings() -> str:
  """What every trace depends on."""
  versions = sys.version, [metadata.version(name) for name in _LIBRARIES]
  settings = sorted(jax.config.values.items()), os.environ.get("XLA_FLAGS")
  memory = devices.memory(), devices.concurrency()  # the search refuses what needs more
  return repr((_code(), versions, settings, devices.describe(), cores(), memory))


@functools.cache
def _files() -> list[Path]:
  """The package's modules; a name with a dot in front is an editor's own file."""
  return sorted(file for file in _PACKAGE.rglob("*.py") if not file.name.startswith("."))


@functools.cache
def _code() -> str:
  """The digest of the package's files."""
  digest = hashlib.sha256()
  for file in _files():
    digest.update(f"{file.relative_to(_PACKAGE)}\0".encode() + file.read_bytes() + b"\0")
  return digest.hexdigest()
