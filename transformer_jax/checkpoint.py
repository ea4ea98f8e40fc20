"""The run folder: everything needed to go on training or to decode. The only file that imports orbax.

config.json       the experiment
tokenizer.model   SentencePiece
provenance.json   data, versions and machines that the run has seen
checkpoints/STEP  params, optimizer, average (the moving one of params, if kept), and the validation loss
metrics.jsonl     one line a log, and tensorboard/ with the same curves
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp
from absl import logging
from etils import epath
from orbax.checkpoint.checkpoint_managers import preservation_policy

from transformer_jax import config_values, families, parallel
from transformer_jax.config import Config
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.errors import InputError, RunError
from transformer_jax.progress import say
from transformer_jax.training.step import Params, TrainState, init_params, init_state

CONFIG, TOKENIZER, PROVENANCE, CHECKPOINTS = "config.json", "tokenizer.model", "provenance.json", "checkpoints"

# Keys that may change between two parts of one run: they do not change what an update computes.
_FREE = {
  *(f"data.{key}" for key in ("train", "validation", "test", "cache_dir", "data_dir", "tokenizer")),
  *(f"train.{key}" for key in ("steps", "log_every", "save_every", "keep", "max_skipped", "accumulation")),
  *("decode", "evaluate", "debug"),  # and all that is in them
}


class Checkpoints:
  """The checkpoints of a run: the last `keep` and the best by validation loss."""

  def __init__(self, workdir: epath.Path, keep: int):
    def loss(metrics: dict[str, float]) -> float:
      return metrics["validation_loss"]

    best = preservation_policy.BestN(get_metric_fn=loss, reverse=True, n=1, keep_checkpoints_without_metrics=False)
    policy = preservation_policy.AnyPreservationPolicy([preservation_policy.LatestN(keep), best])
    options = ocp.CheckpointManagerOptions(preservation_policy=policy, best_fn=loss, best_mode="min")
    self._workdir = workdir
    self._manager = ocp.CheckpointManager(workdir / CHECKPOINTS, options=options)

  def save(self, state: TrainState, validation_loss: float | None) -> None:
    """Writes the state in the background; a checkpoint counts only when it is whole."""
    step = int(state.step)
    if step in self._manager.all_steps():
      return
    items = {name: ocp.args.StandardSave(item) for name, item in _items(state).items()}
    metrics = None if validation_loss is None else {"validation_loss": validation_loss}
    try:
      saved = self._manager.save(step, args=ocp.args.Composite(**items), metrics=metrics)
    except OSError as error:
      raise _not_saved(step, error) from error
    if not saved:
      raise RunError(f"the checkpoint of step {step} was not written, as a later one exists: use another --workdir")

  def restore(self, config: Config) -> TrainState | None:
    """The last state on every local device, or None at the beginning of a run."""
    abstract = _abstract(jax.eval_shape(lambda: init_state(config)))
    items = {name: ocp.args.StandardRestore(item) for name, item in _items(abstract).items()}

    def read(step: int) -> Any:
      return self._manager.restore(step, args=ocp.args.Composite(**items))

    found = _newest_whole(self._workdir, read, resuming=True)
    self._manager.reload()  # what was set aside is no checkpoint any more
    if found is None:
      return None
    _, restored = found
    return TrainState(
      restored.optimizer["step"], restored.params, restored.optimizer["moments"], restored.get("average")
    )

  def wait(self) -> None:
    """Until what was saved is on disk."""
    try:
      self._manager.wait_until_finished()
      self._manager.check_for_errors()
    except OSError as error:
      raise _not_saved(self._manager.latest_step(), error) from error

  def close(self) -> None:
    self._manager.close()


def _newest_whole(workdir: epath.Path, read: Callable[[int], Any], *, resuming: bool = False) -> tuple[int, Any] | None:
  """The newest step that can be read, and what `read` gives of it; None where there is no checkpoint.

  Args:
    workdir: the run folder.
    read: reads one step.
    resuming: nobody else writes there, and damaged checkpoints that are newer than the one found are moved to
      `damaged/`, so that their steps can be saved again.

  Raises:
    RunError: there are checkpoints, and none can be read; all are left as they are.
  """
  if resuming:
    for cut_short in (workdir / CHECKPOINTS).glob("*.orbax-checkpoint-tmp"):
      say(f"{cut_short} was cut short while it was written, and is not used")
  damaged: list[int] = []
  for step in sorted(finished(workdir), reverse=True):
    try:
      found = step, read(step)
    except (OSError, ValueError, KeyError, TypeError) as error:
      say(f"the checkpoint of step {step} is damaged and not used: {_first_line(error)}")
      damaged.append(step)
      continue
    if resuming and parallel.is_main_host():
      _set_aside(workdir, damaged)
    return found
  if damaged:
    raise RunError(f"every checkpoint in {workdir} is damaged, or cannot be read here")
  return None


def _set_aside(workdir: epath.Path, steps: list[int]) -> None:
  for step in steps:
    (workdir / "damaged").mkdir(exist_ok=True)
    (workdir / CHECKPOINTS / str(step)).rename(workdir / "damaged" / f"{step}.{time.time_ns()}")


def _first_line(error: Exception) -> str:
  return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def _items(state: TrainState) -> dict[str, Any]:
  """The parts of a checkpoint, each of which can be read without the others."""
  items = {"params": state.params, "optimizer": {"step": state.step, "moments": state.optimizer}}
  return items if state.average is None else items | {"average": state.average}


def _not_saved(step: int | None, error: OSError) -> RunError:
  return RunError(f"a checkpoint near step {step} could not be written ({error}); the ones before it are untouched")


def _abstract(tree: Any) -> Any:
  """Shapes and types with the placement in which orbax is to restore them."""
  placement = parallel.on_all_devices()
  return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=placement), tree)


def check_run(workdir: epath.Path, config: Config) -> bool:
  """Whether the folder holds a run already, which must then be one of this config.

  Raises:
    InputError: the folder cannot be written, it holds averaged parameters, or a key differs that may not.
  """
  make_folder(workdir, "--workdir")
  if not (workdir / CONFIG).exists():
    return False
  for start in read_provenance(workdir):
    if "averaged" in start:
      raise InputError(
        f"{workdir} holds averaged parameters without an optimizer, for decoding only: "
        f"train on in the run that they come from, {start['averaged']['run']}, or use another --workdir"
      )
  _check_same(read_config(workdir), config, workdir)
  return True


def make_folder(workdir: epath.Path, flag: str) -> None:
  """Makes a run folder, or finds that the one there can be written.

  Raises:
    InputError: it cannot be; the message names the `flag` that chose it.
  """
  try:
    workdir.mkdir(parents=True, exist_ok=True)
    probe = workdir / f".{os.getpid()}.tmp"
    probe.write_text("")
    probe.unlink()
  except OSError as error:
    raise InputError(f"the run folder {workdir} cannot be written: {error.strerror}; choose another {flag}") from error


def begin_run(workdir: epath.Path, config: Config, tokenizer: Tokenizer, history: list[dict[str, Any]]) -> None:
  """Writes what the run depends on; the config last, as it makes the folder that of a run."""
  if parallel.is_main_host():
    tokenizer.save(workdir / TOKENIZER)
    write_atomically(workdir / PROVENANCE, json.dumps(history, indent=2) + "\n")
    write_atomically(workdir / CONFIG, config_values.to_json(config))


def _check_same(old: Config, new: Config, workdir: epath.Path) -> None:
  family, another = families.name_of(old.model), families.name_of(new.model)
  if family != another:
    raise InputError(
      f"the config is of a {another} model, but the run in {workdir} of a {family}: use another --workdir"
    )
  before = config_values.flat(old)
  for key, value in config_values.flat(new).items():
    if value != before[key] and not _FREE & {key, key.split(".")[0]}:
      raise InputError(
        f"config.{key} is {value!r}, but the run in {workdir} was begun with {before[key]!r}: "
        "set it back, or use another --workdir"
      )


def read_config(workdir: epath.Path) -> Config:
  """The config of a run.

  Raises:
    InputError: there is none, or it is malformed.
  """
  path = workdir / CONFIG
  try:
    values = json.loads(path.read_text())
  except FileNotFoundError as error:
    raise InputError(
      f"{workdir} is not a run folder: it has no {CONFIG}; train.py --workdir={workdir} makes one"
    ) from error
  except (OSError, ValueError) as error:
    raise InputError(f"{path} cannot be read: {error}") from error
  return config_values.from_dict(values)


def read_history(workdir: epath.Path, data: str) -> list[dict[str, Any]]:
  """What the earlier starts of a run depended on.

  Args:
    workdir: the run folder.
    data: the fingerprint of the packed training text.

  Raises:
    InputError: the training text is no longer the one that the run was begun with.
  """
  history = read_provenance(workdir)
  if not history or "data" not in history[0]:
    raise InputError(f"{workdir / PROVENANCE} does not say with which text the run was begun: use another --workdir")
  if history[0]["data"] != data:
    raise InputError(
      f"config.data.train now gives other sentence pairs than those that the run in {workdir} was begun with: "
      "give it the same text, or use another --workdir"
    )
  return history


def read_provenance(workdir: epath.Path) -> list[dict[str, Any]]:
  """What a run folder comes from: one entry for each start of training, or for an averaging.

  Raises:
    InputError: the file is malformed.
  """
  path = workdir / PROVENANCE
  try:
    entries = json.loads(path.read_text()) if path.exists() else []
  except (OSError, ValueError) as error:
    raise InputError(f"{path} cannot be read: {error}") from error
  if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
    raise InputError(f"{path} must be a list of objects")
  return entries


def folder_of(workdir: str | os.PathLike) -> epath.Path:
  """The path of a run folder, whole, as orbax wants it."""
  return epath.Path(os.path.abspath(workdir) if "://" not in os.fspath(workdir) else workdir)


def load_for_decoding(workdir: str | os.PathLike) -> tuple[Config, Tokenizer, Params, int]:
  """Config, tokenizer, the parameters of the last checkpoint on every local device, and its step.

  The parameters are their moving average where the checkpoint has one.

  Raises:
    InputError: not a run folder, or no finished checkpoint in it.
    RunError: every checkpoint is damaged.
  """
  folder = folder_of(workdir)
  config = read_config(folder)
  abstract = _abstract(jax.eval_shape(lambda: init_params(config)))

  def read(step: int) -> Params:
    item = "average" if (folder / CHECKPOINTS / str(step) / "average").exists() else "params"
    return manager.restore(step, args=ocp.args.Composite(**{item: ocp.args.StandardRestore(abstract)}))[item]

  found = None
  if (folder / CHECKPOINTS).exists():
    with _quiet_orbax(), _reader(folder / CHECKPOINTS) as manager:
      found = _newest_whole(folder, read)
  if found is None:
    raise InputError(f"{folder} has no finished checkpoint yet: train.py --workdir={folder} makes one")
  step, params = found
  return config, Tokenizer.load(folder / TOKENIZER), params, step


def finished(workdir: epath.Path) -> dict[int, datetime]:
  """The steps of a run's finished checkpoints, oldest first, and when each was finished."""
  found = ocp.path.step.standard_name_format().find_all(workdir / CHECKPOINTS)
  return {checkpoint.step: checkpoint.commit_timestamp for checkpoint in sorted(found, key=lambda each: each.step)}


def read_params(workdir: epath.Path, config: Config, step: int) -> Params:
  """The parameters of one checkpoint, not their moving average, as NumPy arrays."""
  abstract = jax.eval_shape(lambda: init_params(config))  # NumPy arrays, as it names no device
  with _quiet_orbax(), _reader(workdir / CHECKPOINTS) as manager:
    restored: Any = manager.restore(step, args=ocp.args.Composite(params=ocp.args.StandardRestore(abstract)))
  return restored.params


def write_params(workdir: epath.Path, step: int, params: Params) -> None:
  """Writes a checkpoint of parameters alone: enough to decode, not to train on.

  Raises:
    RunError: the disk is full.
  """
  try:
    with _quiet_orbax(), ocp.CheckpointManager(workdir / CHECKPOINTS) as manager:
      manager.save(step, args=ocp.args.Composite(params=ocp.args.StandardSave(params)))
      manager.wait_until_finished()
      manager.check_for_errors()
  except OSError as error:
    raise _not_saved(step, error) from error


def _reader(folder: epath.Path) -> ocp.CheckpointManager:
  return ocp.CheckpointManager(folder, options=ocp.CheckpointManagerOptions(read_only=True))


@contextmanager
def _quiet_orbax() -> Iterator[None]:
  """Without warnings that what is opened to be read cannot be written."""
  before = logging.get_verbosity()
  logging.set_verbosity(logging.ERROR)
  try:
    yield
  finally:
    logging.set_verbosity(before)


def write_atomically(path: epath.Path | Path, text: str) -> None:
  """Replaces a file as a whole, so that a reader never sees half of it."""
  temporary = path.parent / f".{path.name}.tmp"
  temporary.write_text(text)
  temporary.replace(path)
