"""An existing run folder, opened once and handed on."""

import contextlib
import functools
import os
import shlex
from typing import NamedTuple

from etils import epath

from transformer_jax import registry
from transformer_jax.config import Config, serialization
from transformer_jax.data import tokenizers
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.model.params import Params
from transformer_jax.runs import digests, metrics_file, params_file, run_folder
from transformer_jax.runs.steps import LAST, Finished, Step
from transformer_jax.runtime import devices, untrusted
from transformer_jax.runtime.errors import PROGRAM, InputError
from transformer_jax.runtime.values import Json, JsonObject

_MOST_NAMED = 9  # runs, in a message


class Model(NamedTuple):
  """A trained model.

  Attributes:
    config: the run's.
    params: the parameters, on every local device; their moving average where the checkpoint has one.
    tokenizer: the run's.
    step: the checkpoint's.
  """

  config: Config
  params: Params
  tokenizer: Tokenizer
  step: int


def _what_it_is(path: epath.Path) -> str:
  """What a path is that is no run folder, and what to do."""
  if not path.exists():
    return "it does not exist; check the path"
  if not path.is_dir():
    return "it is a file; check the path"
  inside: list[str] = []
  if "://" not in os.fspath(path):  # a bucket would be asked for each
    with contextlib.suppress(OSError):
      inside = sorted(child.name for child in path.iterdir() if (child / run_folder.CONFIG).exists())
  if inside:
    more = f" and {len(inside) - _MOST_NAMED} more" if inside[_MOST_NAMED:] else ""
    runs = ("the run " if len(inside) == 1 else "the runs ") + ", ".join(inside[:_MOST_NAMED])
    return f"it has no {run_folder.CONFIG}, but holds {runs}{more}: name a run"
  return f"it has no {run_folder.CONFIG}; check the path"


class Run:
  """A run folder, which may come from a stranger; `open` makes one.

  What is in the folder is read when it is first asked for. Checkpoints and metrics are read again each time, as
  somebody may train there.

  Attributes:
    path: the folder.
    config: the experiment.
    said: the step that a command has said it restores; None if it said none.
  """

  said: int | None = None

  def __init__(self, workdir: str | os.PathLike, accept_edits: bool):
    self._accept_edits = accept_edits
    self.path = run_folder.folder_of(workdir)
    if (self.path / run_folder.CONFIG).exists():  # else it is no run, and nothing in it is read
      untrusted.require_own_files(self.path)
    try:
      values = self._json(run_folder.CONFIG)
    except (FileNotFoundError, InputError) as error:
      if isinstance(error, InputError) and not isinstance(error.__cause__, NotADirectoryError):
        raise
      raise InputError(f"{self.path} is not a run folder: {_what_it_is(self.path)}") from error
    self.config = serialization.from_dict(values)
    self.config.require_positions()

  @functools.cached_property
  def tokenizer(self) -> Tokenizer:
    """The vocabulary.

    Raises:
      InputError: there is none, it is damaged, or its size is not that of the config.
    """
    tokenizer = tokenizers.load(self.path, self._bytes)
    here, there = (" and ".join(map(str, each.vocab_sizes)) for each in (tokenizer, self.config.model))
    if here != there:
      raise InputError(
        f"{self.path / next(iter(tokenizer.files()))} has {here} tokens, but {self.path / run_folder.CONFIG} says "
        f"{there}: take both from one run"
      )
    return tokenizer

  @functools.cached_property
  def provenance(self) -> list[JsonObject]:
    """The origin of the run: one entry for each start of training, averaging, import and export.

    Raises:
      InputError: the file is damaged or malformed.
    """
    path = self.path / run_folder.PROVENANCE
    entries = self._json(run_folder.PROVENANCE) if path.exists() else []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
      raise InputError(f"{path} must be a list of objects")
    for averaged in (entry["averaged"] for entry in entries if "averaged" in entry):
      steps = averaged.get("steps") if isinstance(averaged, dict) else None
      if not isinstance(steps, list) or not all(isinstance(step, int) for step in steps) or "run" not in averaged:
        raise InputError(f'{path} has an entry whose "averaged" is not of a run and its steps')
    return entries

  @property
  def averaged(self) -> JsonObject | None:
    """The `run` and the `steps` whose mean the parameters are; None if they are no mean.

    Raises:
      InputError: as `provenance` does.
    """
    return next((entry["averaged"] for entry in self.provenance if "averaged" in entry), None)

  @property
  def imported(self) -> JsonObject | None:
    """The other library's folder that the parameters were imported from, or those that training began with.

    Raises:
      InputError: as `provenance` does.
    """
    for entry in reversed(self.provenance):
      began = entry.get("init_from")
      for found in (entry.get("imported"), began.get("imported") if isinstance(began, dict) else None):
        if isinstance(found, dict):
          return found
    return None

  @property
  def checkpoints(self) -> Finished:
    """The finished checkpoints: their steps, the last and the best.

    Raises:
      InputError: the file of the parameters is damaged.
      RunError: a checkpoint's description is damaged.
    """
    if params_file.has_one(self.path):
      step = params_file.step_of(self.path)
      return Finished((step,), step, None)
    from transformer_jax.runs import reading  # orbax takes seconds to import

    return reading.finished(self.path)

  @property
  def metrics(self) -> list[JsonObject]:
    """The lines of the log, each with its `step` and its `split`.

    Raises:
      InputError: a line is malformed.
    """
    return [entry for _, entry in metrics_file.read_lines(self.path / metrics_file.FILE)]

  def model(self, command: str | None = None, step: Step = LAST) -> Model:
    """The trained model.

    Args:
      command: the command that the model must be for; None for any.
      step: which checkpoint: its number, `last`, or `best`, by validation.

    Raises:
      InputError: the run is of a model for something else, has no such checkpoint or none at all, or is damaged; or JAX
        finds no device.
      RunError: the checkpoint is damaged; of `last`, every one is.
    """
    devices.require_devices()
    if command is not None:
      registry.require_command(self.config.model, command, self.path)
    tokenizer = self.tokenizer
    if params_file.has_one(self.path):
      number, params = params_file.read(self.path, self.config, step)
    else:
      number, params = self._of_checkpoint(step)
    return Model(self.config, params, tokenizer, number)

  def _of_checkpoint(self, step: Step) -> tuple[int, Params]:
    """The step and the parameters of a checkpoint."""
    from transformer_jax.runs import reading, restore  # orbax takes seconds to import

    found = reading.newest_intact(
      self.path, lambda number: restore.params_to_decode_with(self.path, self.config, number), step, self.said
    )
    if found is None:
      again = f"{PROGRAM} train --workdir={shlex.quote(os.fspath(self.path))}"
      raise InputError(f"{self.path} has no finished checkpoint yet: `{again}` makes one")
    return found

  def _json(self, name: str) -> Json:
    return untrusted.json_of(self.path / name, lambda: self._bytes(name, untrusted.LARGEST_JSON))

  def _bytes(self, name: str, most: int) -> bytes:
    return digests.read(self.path, name, most, accept_edits=self._accept_edits)


def open(workdir: Run | str | os.PathLike, *, accept_edits: bool = False) -> Run:
  """Opens a run folder.

  Args:
    workdir: the run folder; a run that is open already is given back as it is.
    accept_edits: config.json, provenance.json and the vocabulary count as they are, though they are not as they were
      written.

  Raises:
    InputError: not a run folder, a damaged one, or one with links to other places.
  """
  return workdir if isinstance(workdir, Run) else Run(workdir, accept_edits)
