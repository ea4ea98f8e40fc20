"""The export of a run's model into another format."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from transformer_jax.interchange.formats import FORMATS
from transformer_jax.runs.run import Run
from transformer_jax.runs.run import open as open_run
from transformer_jax.runs.steps import LAST, Step
from transformer_jax.runtime.errors import InputError, require_option, writing


def export(
  workdir: Run | str | os.PathLike, output: str | os.PathLike, to: str, *, step: Step = LAST, **options: str | None
) -> int:
  """Writes a folder with the model of a run in another format: its parameters, its vocabulary and what else it needs.

  Args:
    workdir: the run folder, or the run that `runs.open` made of it.
    output: the folder to write, which must be new or empty. It is there only when it is complete.
    to: the name of a format in `formats.FORMATS`.
    step: which checkpoint: its number, `last`, or `best`, by validation loss.
    options: the option of the format; None is its default.

  Returns:
    The step of the checkpoint.

  Raises:
    InputError: not a run folder, the format cannot express the model, an option is not one of the format, or the output
      cannot be used.
    RunError: the checkpoint is damaged, or the disk is full.
  """
  require_option("to", to, to in FORMATS, f"one of {', '.join(FORMATS)}")
  values = _options(to, options)
  run, target = open_run(workdir), _new(output)
  module = import_module(FORMATS[to].module)
  module.require(run.config)
  model = run.model(step=step)
  with _folder(target) as folder:
    module.write(folder, run, model, **values)
  return model.step


def _options(to: str, given: dict[str, str | None]) -> dict[str, str]:
  """The values of the format's own option; the default where it was not given."""
  own = FORMATS[to].option
  for name, value in given.items():
    if value is not None and (own is None or name != own.name):
      raise InputError(f"--{name} is not an option of the format {to}: leave it out")
  if own is None:
    return {}
  value = given.get(own.name) or own.values[0]
  require_option(own.name, value, value in own.values, f"one of {', '.join(own.values)}")
  return {own.name: value}


def _new(output: str | os.PathLike) -> Path:
  """The absolute path of a folder that is new or empty."""
  if "://" in os.fspath(output):
    raise InputError(f"{output} is not on this machine: choose another --output, and copy the folder there")
  target = Path(os.path.abspath(os.path.expanduser(output)))
  if target.is_dir() and any(target.iterdir()):
    raise InputError(f"{target} holds files already: choose another --output")
  if os.path.lexists(target) and not target.is_dir():
    raise InputError(f"{target} is a file: choose another --output")
  return target


@contextmanager
def _folder(target: Path) -> Iterator[Path]:
  """A folder to write into, which becomes `target` at the end of the body, or is deleted if the body fails."""
  folder = target.parent / f".{target.name}.{uuid.uuid4().hex}.tmp"
  try:
    target.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir()
  except OSError as error:
    raise InputError(f"{target} cannot be written: {error.strerror}; choose another --output") from error
  try:
    with writing(target):
      yield folder
      folder.replace(target)
  finally:
    shutil.rmtree(folder, ignore_errors=True)
