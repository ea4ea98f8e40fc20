"""model.safetensors: the parameters of a run folder that `export` or `import` wrote, in place of checkpoints.

Reading them does not need orbax.
"""

import json
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from etils import epath

from transformer_jax.config import Config, serialization
from transformer_jax.model.config import Dtype
from transformer_jax.model.params import Params, numpy_by_name
from transformer_jax.runs import untrusted_arrays
from transformer_jax.runs.checksums import checksums, fit
from transformer_jax.runs.steps import LAST, require_step
from transformer_jax.runtime import devices, tensor_file
from transformer_jax.runtime.errors import InputError, RunError, one_line
from transformer_jax.training.initialization import abstract_params, shapes_of

FILE = "model.safetensors"
_STEP, _SUMS = "step", "checksums"
_TYPES = ("F32", "BF16")  # a bfloat16 number is a float32 number too


def write(folder: Path, params: Params, step: int, dtype: Dtype) -> None:
  """Writes the file.

  Args:
    folder: where no such file is.
    params: float32 arrays.
    step: the number of the update that they come from.
    dtype: what they are rounded to.

  Raises:
    RunError: the disk refuses it.
  """
  arrays = {name: x.astype(jnp.dtype(dtype.value)) for name, x in numpy_by_name(params).items()}
  tensor_file.write(folder / FILE, arrays, {_STEP: str(step), _SUMS: json.dumps(checksums(arrays))})


def has_one(workdir: epath.Path) -> bool:
  """Whether the folder's parameters are in such a file."""
  return (workdir / FILE).exists()


def step_of(workdir: epath.Path) -> int:
  """The update that the parameters come from.

  Raises:
    InputError: the file is damaged.
  """
  with tensor_file.opened(workdir / FILE) as file:
    return _step(file, workdir)


def read(workdir: epath.Path, config: Config, wanted: int | str) -> tuple[int, Params]:
  """The step, and the parameters as float32 arrays on every local device.

  Args:
    workdir: the run folder.
    config: the run's.
    wanted: the step, or `last`.

  Raises:
    InputError: the file is damaged, of another step, or of another model than the config's.
    RunError: the file has other numbers than were saved.
  """
  require_step(wanted)
  path = workdir / FILE
  with tensor_file.opened(path) as file:
    step = _step(file, workdir)
    if wanted not in (step, LAST):
      raise InputError(f"{path} has no parameters but those of step {step}: leave --step={wanted} out")
    try:
      untrusted_arrays.require_layers(serialization.to_dict(config.model), len(file.shapes))
      expected = shapes_of(config)
      _require_arrays(file, expected)
      arrays = {name: file.array(name) for name in expected}
      _require_sums(file, arrays)
    except untrusted_arrays.ModelMismatch as error:
      raise InputError(
        f"{path} is of another model than config.json beside it ({error}): bring back the config.json that came with it"
      ) from error
    except ValueError as error:
      raise RunError(f"{path} cannot be used: {one_line(error)}; copy it again") from error
    # Each is copied, as its memory is the file's.
    leaves = [np.array(array, np.float32) for array in arrays.values()]
  return step, devices.replicate(jax.tree.unflatten(jax.tree.structure(abstract_params(config)), leaves))


def _step(file: tensor_file.TensorFile, workdir: epath.Path) -> int:
  text = file.metadata.get(_STEP, "")
  if not (text.isascii() and text.isdigit() and len(text) < 19):
    raise InputError(f"{os.fspath(workdir / FILE)} does not say of which step it is: export the run again")
  return int(text)


def _require_arrays(file: tensor_file.TensorFile, expected: dict[str, tuple[int, ...]]) -> None:
  untrusted_arrays.require_names(expected, file.shapes, "file")
  for name, shape in expected.items():
    if file.shapes[name] != shape:
      raise untrusted_arrays.ModelMismatch(f"{name} has shape {file.shapes[name]}, but the model's {shape}")
    if file.types[name] not in _TYPES:
      raise ValueError(f"{name} has type {file.types[name]}, but must have {' or '.join(_TYPES)}")


def _require_sums(file: tensor_file.TensorFile, arrays: dict[str, np.ndarray]) -> None:
  try:
    recorded = json.loads(file.metadata.get(_SUMS, ""))
  except (ValueError, RecursionError) as error:
    raise ValueError("it has no checksums") from error
  if not fit(recorded, arrays):
    raise ValueError("it holds other numbers than were saved")
