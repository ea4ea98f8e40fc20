"""The export of a run's model into another format."""

import os

from transformer_jax.interchange import formats, new_folder
from transformer_jax.interchange.formats import FORMATS
from transformer_jax.runs import run_folder
from transformer_jax.runs.run import Run
from transformer_jax.runs.run import open as open_run
from transformer_jax.runs.steps import LAST, Step
from transformer_jax.runtime.errors import InputError, require_option


def export(
  workdir: Run | str | os.PathLike, output: str | os.PathLike, to: str, *, step: Step = LAST, **options: str | None
) -> int:
  """Writes a folder with the model of a run in another format: its parameters, its vocabulary and what else it needs.

  Args:
    workdir: the run folder, or the run that `runs.open` made of it.
    output: the folder to write, which must be new or empty. It is there only when it is complete.
    to: the name of a format in `formats.FORMATS`.
    step: which checkpoint: its number, `last`, or `best`, by validation.
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
  run, target = open_run(workdir), new_folder.new(output, "--output")
  if to == "safetensors":  # a run folder, which no command opens under some names
    run_folder.folder_of(target)
  module = formats.module(to)
  module.require(run.config)
  model = run.model(step=step)
  with new_folder.complete(target, "--output") as folder:
    module.write(folder, run, model, **values)
  return model.step


def _options(to: str, given: dict[str, str | None]) -> dict[str, str]:
  """The values of the format's own option; the default where it was not given."""
  own = FORMATS[to]
  for name, value in given.items():
    if value is not None and (own is None or name != own.name):
      raise InputError(f"--{name} is not an option of the format {to}: leave it out")
  if own is None:
    return {}
  value = given.get(own.name) or own.values[0]
  require_option(own.name, value, value in own.values, f"one of {', '.join(own.values)}")
  return {own.name: value}
