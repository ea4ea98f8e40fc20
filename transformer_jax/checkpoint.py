"""The run folder: everything needed to go on training or to decode. The only file that imports orbax.

config.json       the experiment
tokenizer.model   SentencePiece
provenance.json   data, versions and machines that the run has seen
checkpoints/STEP  params, optimizer, average (the moving one of params, if kept), sums (over the bits of these), log (of
                  what the next line of the log is made so far), and the validation loss
metrics.jsonl     one line a log, and tensorboard/ with the same curves
"""

import contextlib
import fcntl
import functools
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from logging import getLogger
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import orbax.checkpoint as ocp
from absl import logging
from etils import epath
from orbax.checkpoint.checkpoint_managers import preservation_policy

from transformer_jax import config_values, families, hosts, parallel, untrusted
from transformer_jax.checksums import checksums
from transformer_jax.config import Config
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.errors import InputError, RunError, is_out_of_memory, one_line, writing
from transformer_jax.progress import say
from transformer_jax.training.step import Params, TrainState, init_params, init_state

CONFIG, TOKENIZER, PROVENANCE, CHECKPOINTS = "config.json", "tokenizer.model", "provenance.json", "checkpoints"
LOG, SUMS = "log", "sums"

# Keys that may change between two parts of one run: they do not change what an update computes.
_FREE = {
  *(f"data.{key}" for key in ("train", "validation", "test", "cache_dir", "data_dir", "tokenizer")),
  *(f"train.{key}" for key in ("steps", "log_every", "save_every", "keep", "max_skipped", "accumulation")),
  *("decode", "evaluate", "debug"),  # and all that is in them
}


class Restored(NamedTuple):
  """What was saved: the state, and the numbers that the log goes on from, if there were any."""

  state: TrainState
  log: Mapping[str, Any] | None


class Checkpoints:
  """The checkpoints of a run: the last `keep` and the best by validation loss.

  Every host has the whole state, so that the main one alone writes and reads; the others hear from it what it has read.
  """

  def __init__(self, workdir: epath.Path, keep: int):
    def loss(metrics: dict[str, float]) -> float:
      return metrics["validation_loss"]

    best = preservation_policy.BestN(get_metric_fn=loss, reverse=True, n=1, keep_checkpoints_without_metrics=False)
    policy = preservation_policy.AnyPreservationPolicy([preservation_policy.LatestN(keep), best])
    alone = ocp.options.MultiprocessingOptions(primary_host=0, active_processes={0})
    options = ocp.CheckpointManagerOptions(
      preservation_policy=policy, best_fn=loss, best_mode="min", create=False, multiprocessing_options=alone
    )
    self._workdir = workdir
    self._manager: ocp.CheckpointManager | None = None  # on the other hosts
    if not parallel.is_main_host():
      return
    _say_errors_once()
    _set_aside_damaged_losses(workdir)
    with writing(workdir / CHECKPOINTS):
      (workdir / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
      self._manager = ocp.CheckpointManager(workdir / CHECKPOINTS, options=options)

  def save(self, state: TrainState, validation_loss: float | None, log: Mapping[str, Any] | None = None) -> None:
    """Writes the state in the background; a checkpoint counts only when it is whole.

    Args:
      state: of the step to save.
      validation_loss: by which the best checkpoint is known, if it was measured at this step.
      log: numbers that the log goes on from.
    """
    step = int(state.step)
    if self._manager is None or step in self._manager.all_steps():
      return
    numbers = {} if log is None else {LOG: jax.tree.map(np.float64, log)}
    copies = jax.tree.map(np.array, _items(state))  # as the next update reuses the memory
    items: dict[str, Any] = {name: ocp.args.StandardSave(item) for name, item in (copies | numbers).items()}
    items[SUMS] = ocp.args.JsonSave({name: checksums(_by_name(item)) for name, item in _items(state).items()})
    metrics = None if validation_loss is None else {"validation_loss": validation_loss}
    with _saving(self._workdir):
      saved = self._manager.save(step, args=ocp.args.Composite(**items), metrics=metrics)
    if not saved:
      raise RunError(f"the checkpoint of step {step} was not written, as a later one exists: use another --workdir")

  def restore(self, config: Config) -> Restored | None:
    """The last state on every local device, or None at the beginning of a run."""
    abstract = jax.eval_shape(lambda: init_state(config))  # NumPy arrays, as it names no device
    with hosts.together():
      found = self._read(self._manager, abstract) if self._manager else None
    heard = json.loads(hosts.bytes_from_main(json.dumps(found and {"log": found.log}).encode()))
    if heard is None:
      return None
    state = found.state if found else jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), abstract)
    return Restored(parallel.replicate(hosts.from_main(state)), heard["log"])

  def _read(self, manager: ocp.CheckpointManager, abstract: TrainState) -> Restored | None:
    items = {name: ocp.args.StandardRestore(item) for name, item in _items(abstract).items()}

    def read(step: int) -> Any:
      for name, item in _items(abstract).items():
        untrusted.require_arrays(_by_name(item), *_headers(self._workdir, step, name))
      log = {LOG: ocp.args.StandardRestore()} if (self._workdir / CHECKPOINTS / str(step) / LOG).exists() else {}
      restored: Any = manager.restore(step, args=ocp.args.Composite(**items, **log))
      for name in items:
        _require_sums(self._workdir, step, name, restored[name])
      return restored

    found = _newest_whole(self._workdir, read, resuming=True)
    manager.reload()  # what was set aside is no checkpoint any more
    if found is None:
      return None
    _, restored = found
    state = TrainState(
      restored.optimizer["step"], restored.params, restored.optimizer["moments"], restored.get("average")
    )
    return Restored(state, jax.tree.map(float, restored.get(LOG)))

  def wait(self) -> None:
    """Until what was saved is on disk."""
    if self._manager is None:
      return
    with _saving(self._workdir):
      self._manager.wait_until_finished()
      self._manager.check_for_errors()

  def close(self) -> None:
    if self._manager:
      self._manager.close()


def _newest_whole(workdir: epath.Path, read: Callable[[int], Any], *, resuming: bool = False) -> tuple[int, Any] | None:
  """The newest step that can be read, and what `read` gives of it; None where there is no checkpoint.

  Args:
    workdir: the run folder.
    read: reads one step.
    resuming: nobody else writes there. What was cut short is deleted, and damaged checkpoints that are newer than the
      one found are moved to `damaged/`, so that their steps can be saved again.

  Raises:
    RunError: there are checkpoints, and none can be read; all are left as they are.
  """
  if resuming:
    for cut_short in (workdir / CHECKPOINTS).glob("*.orbax-checkpoint-tmp"):
      say(f"{cut_short} was cut short while it was written, and is deleted")
      cut_short.rmtree()
  damaged: list[int] = []
  for step in sorted(finished(workdir), reverse=True):
    try:
      found = step, read(step)
    except Exception as error:  # damaged or hostile files can make orbax raise any
      if is_out_of_memory(error):
        raise
      say(f"the checkpoint of step {step} is damaged and not used: {_first_line(error)}")
      damaged.append(step)
      continue
    if resuming:
      _set_aside(workdir, damaged)
    return found
  if damaged:
    raise RunError(f"every checkpoint in {workdir} is damaged, or cannot be read here")
  return None


def _set_aside_damaged_losses(workdir: epath.Path) -> None:
  """Orbax reads every checkpoint's validation loss when it begins; a checkpoint is as good without it."""
  for step in finished(workdir):
    folder = workdir / CHECKPOINTS / str(step) / "metrics"
    try:
      json.loads((folder / "metrics").read_text())
    except FileNotFoundError:
      continue
    except (OSError, ValueError, RecursionError):
      say(f"{folder} is damaged: the checkpoint of step {step} counts as one without a validation loss")
      _move_to_damaged(workdir, folder, f"{step}.metrics")


def _headers(workdir: epath.Path, step: int, item: str) -> tuple[dict[str, Any], int]:
  """What the arrays of an item of a checkpoint say of themselves, of which none is read, and the bytes of its files."""
  folder = workdir / CHECKPOINTS / str(step) / item
  size = untrusted.size_on_disk(folder)
  with _quiet_orbax(), contextlib.closing(ocp.StandardCheckpointHandler()) as handler:
    return _by_name(handler.metadata(folder).tree), size


def _by_name(tree: Any) -> dict[str, Any]:
  """The leaves, such as `decoder/layers_0/norm/scale`, for trees of dicts as for those of classes."""
  return {
    "/".join(str(getattr(key, "name", getattr(key, "key", getattr(key, "idx", key)))) for key in path): leaf
    for path, leaf in jax.tree.leaves_with_path(tree)
  }


def _require_sums(workdir: epath.Path, step: int, item: str, restored: Any) -> None:
  """Raises ValueError if an item's numbers are not those that were saved; older checkpoints do not tell."""
  path = workdir / CHECKPOINTS / str(step) / SUMS
  if path.exists() and untrusted.read_json(path / "metadata").get(item) != checksums(_by_name(restored)):
    raise ValueError(f"{item} holds other numbers than were saved")


def _set_aside(workdir: epath.Path, steps: list[int]) -> None:
  for step in steps:
    _move_to_damaged(workdir, workdir / CHECKPOINTS / str(step), str(step))


def _move_to_damaged(workdir: epath.Path, path: epath.Path, name: str) -> None:
  (workdir / "damaged").mkdir(exist_ok=True)
  path.rename(workdir / "damaged" / f"{name}.{time.time_ns()}")


def _first_line(error: Exception) -> str:
  return one_line((str(error).strip() or type(error).__name__).splitlines()[0], 200)


def _items(state: TrainState) -> dict[str, Any]:
  """The parts of a checkpoint, each of which can be read without the others."""
  items = {"params": state.params, "optimizer": {"step": state.step, "moments": state.optimizer}}
  return items if state.average is None else items | {"average": state.average}


@contextlib.contextmanager
def _saving(workdir: epath.Path) -> Iterator[None]:
  """Makes of what the disk refuses a RunError; the save that failed may be an earlier one, in the background."""
  try:
    yield
  except (OSError, ValueError) as error:  # of tensorstore it is a ValueError with the system's number of the error
    found = re.search(r"os_error_code='(\d+)'", str(error))
    reason = os.strerror(int(found[1])) if found else getattr(error, "strerror", None) or _first_line(error)
    last = max(finished(workdir), default=None)
    rest = (
      "there is none before it" if last is None else f"that of step {last} is whole, and the same command goes on there"
    )
    raise RunError(f"a checkpoint in {workdir} could not be written: {reason}; {rest}") from error


@functools.cache
def _say_errors_once() -> None:
  """Keeps Python from printing what orbax leaves behind when it raises the first of many errors.

  Where one array cannot be written or read, the errors of others are never asked
  for, and some come when the event loop is closed: each would be a traceback.
  """
  getLogger("asyncio").setLevel("CRITICAL")
  before = sys.unraisablehook

  def hook(unraisable: Any) -> None:
    if str(unraisable.exc_value) != "Event loop is closed":
      before(unraisable)

  sys.unraisablehook = hook


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
  begun_with = read_config(workdir)
  for start in read_provenance(workdir):
    if "averaged" in start:
      raise InputError(
        f"{workdir} holds averaged parameters without an optimizer, for decoding only: "
        f"train on in the run that they come from, {start['averaged']['run']}, or use another --workdir"
      )
  _check_same(begun_with, config, workdir)
  return True


@contextlib.contextmanager
def alone_in(workdir: epath.Path) -> Iterator[None]:
  """Keeps others from training in the same folder meanwhile; the lock ends with the process, however that ends.

  Where the file system has no locks there is none.

  Raises:
    InputError: somebody else trains there, or the folder cannot be written.
  """
  with hosts.together():
    folder = _locked(workdir) if parallel.is_main_host() and "://" not in os.fspath(workdir) else None
  try:
    yield
  finally:
    if folder is not None:
      os.close(folder)


def _locked(workdir: epath.Path) -> int:
  make_folder(workdir, "--workdir")
  folder = os.open(workdir, os.O_RDONLY)
  try:
    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError as error:
    os.close(folder)
    raise InputError(f"another process trains in {workdir}: wait for its end, or use another --workdir") from error
  except OSError:
    pass
  return folder


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
  """The config of a run, whose folder may come from a stranger.

  Raises:
    InputError: there is none, it is malformed, or the folder has links to other places.
  """
  untrusted.require_own_files(workdir)
  try:
    values = untrusted.read_json(workdir / CONFIG)
  except FileNotFoundError as error:
    raise InputError(
      f"{workdir} is not a run folder: it has no {CONFIG}; train.py --workdir={workdir} makes one"
    ) from error
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
  entries = untrusted.read_json(path) if path.exists() else []
  if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
    raise InputError(f"{path} must be a list of objects")
  for averaged in (entry["averaged"] for entry in entries if "averaged" in entry):
    if not isinstance(averaged, dict) or not {"run", "steps"} <= averaged.keys():
      raise InputError(f'{path} has an entry whose "averaged" is not of a run and its steps')
  return entries


def folder_of(workdir: str | os.PathLike) -> epath.Path:
  """The path of a run folder, whole, as orbax wants it."""
  return epath.Path(os.path.abspath(workdir) if "://" not in os.fspath(workdir) else workdir)


def tokenizer_from(workdir: str, vocab_size: int) -> Tokenizer:
  """The tokenizer of another run, to begin with.

  Raises:
    InputError: not a run folder, or its vocabulary has another size.
  """
  folder = folder_of(workdir)
  read_config(folder)
  tokenizer = Tokenizer.load(folder / TOKENIZER)
  if tokenizer.vocab_size != vocab_size:
    raise InputError(
      f"config.model.vocab_size is {vocab_size}, but the run in {workdir} has {tokenizer.vocab_size} pieces: "
      f"set config.model.vocab_size={tokenizer.vocab_size}"
    )
  return tokenizer


def params_from(workdir: str, params: Params) -> Params:
  """`params`, and in their places those of another run's last checkpoint that have the same name and shape.

  Raises:
    InputError: not a run folder, or there are none such.
  """
  _, _, others, step = load_for_decoding(workdir, None)
  found = dict(jax.tree_util.tree_leaves_with_path(others))
  new: list[str] = []

  def choose(path: Any, random: jax.Array) -> jax.Array:
    other = found.get(path)
    if other is not None and other.shape == random.shape:
      return other
    new.append("/".join(key.key for key in path))
    return random

  chosen = jax.tree_util.tree_map_with_path(choose, params)
  if len(new) == len(jax.tree.leaves(params)):
    raise InputError(f"config.train.init_from: the run in {workdir} has no parameters of this model's names and shapes")
  say(f"beginning with the parameters of step {step} of {workdir}; new: {', '.join(new) or 'none'}")
  return chosen


def load_for_decoding(
  workdir: str | os.PathLike, command: str | None = "translate"
) -> tuple[Config, Tokenizer, Params, int]:
  """Config, tokenizer, the parameters of the last checkpoint on every local device, and its step.

  The parameters are their moving average where the checkpoint has one.

  Args:
    workdir: the run folder.
    command: for which its model must be; None for any.

  Raises:
    InputError: not a run folder, one of a model for something else, or no finished checkpoint in it.
    RunError: every checkpoint is damaged.
  """
  folder = folder_of(workdir)
  config = read_config(folder)
  if command is not None:
    families.require_command(config.model, command, folder)
  tokenizer = Tokenizer.load(folder / TOKENIZER)
  if tokenizer.vocab_size != config.model.vocab_size:
    raise InputError(
      f"{folder / TOKENIZER} has {tokenizer.vocab_size} pieces, but {folder / CONFIG} says {config.model.vocab_size}: "
      "take both from one run"
    )

  def read(step: int) -> Params:
    item = "average" if (folder / CHECKPOINTS / str(step) / "average").exists() else "params"
    return _read_item(folder, step, item, _abstract(_params_like(folder, step, item, config)))

  found = _newest_whole(folder, read)
  if found is None:
    raise InputError(f"{folder} has no finished checkpoint yet: train.py --workdir={folder} makes one")
  step, params = found
  return config, tokenizer, params, step


def _params_like(workdir: epath.Path, step: int, item: str, config: Config) -> Params:
  """Shapes and types of a config's parameters, before memory is taken for them.

  Raises:
    ValueError: the checkpoint's `item` holds others.
  """
  headers, size = _headers(workdir, step, item)
  untrusted.require_layers(config_values.to_dict(config.model), len(headers))
  abstract = jax.eval_shape(lambda: init_params(config))
  untrusted.require_arrays(_by_name(abstract), headers, size)
  return abstract


def finished(workdir: epath.Path) -> dict[int, datetime]:
  """The steps of a run's finished checkpoints, oldest first, and when each was finished.

  Raises:
    RunError: a checkpoint's description says no such thing.
  """
  if not (workdir / CHECKPOINTS).exists():
    return {}
  try:
    with _quiet_orbax():
      found = sorted(ocp.path.step.standard_name_format().find_all(workdir / CHECKPOINTS), key=lambda each: each.step)
      return {checkpoint.step: checkpoint.commit_timestamp for checkpoint in found}
  except Exception as error:  # as damage makes orbax raise it
    reason = _first_line(error)
    raise RunError(f"a _CHECKPOINT_METADATA in {workdir / CHECKPOINTS} is damaged, delete it: {reason}") from error


def read_params(workdir: epath.Path, config: Config, step: int) -> Params:
  """The parameters of one checkpoint, not their moving average, as NumPy arrays."""
  abstract = _params_like(workdir, step, "params", config)  # NumPy arrays, as it names no device
  return _read_item(workdir, step, "params", abstract)


def write_params(workdir: epath.Path, step: int, params: Params) -> None:
  """Writes a checkpoint of parameters alone: enough to decode, not to train on.

  Raises:
    RunError: the disk is full.
  """
  with _quiet_orbax(), _saving(workdir), ocp.CheckpointManager(workdir / CHECKPOINTS) as manager:
    sums = ocp.args.JsonSave({"params": checksums(_by_name(params))})
    manager.save(step, args=ocp.args.Composite(params=ocp.args.StandardSave(params), **{SUMS: sums}))
    manager.wait_until_finished()
    manager.check_for_errors()


def _read_item(workdir: epath.Path, step: int, item: str, abstract: Any) -> Any:
  """One item of a checkpoint, of these shapes, types and placement; nothing else of the folder is looked at."""
  with _quiet_orbax(), contextlib.closing(ocp.StandardCheckpointHandler()) as handler:
    restored = handler.restore(workdir / CHECKPOINTS / str(step) / item, args=ocp.args.StandardRestore(abstract))
  _require_sums(workdir, step, item, restored)
  return restored


@contextlib.contextmanager
def _quiet_orbax() -> Iterator[None]:
  """Without warnings that what is opened to be read cannot be written, nor what a damaged file holds."""
  _say_errors_once()
  before = logging.get_verbosity()
  logging.set_verbosity(logging.FATAL)
  try:
    yield
  finally:
    logging.set_verbosity(before)


def write_atomically(path: epath.Path | Path, text: str) -> None:
  """Replaces a file as a whole, so that a reader never sees half of it."""
  temporary = path.parent / f".{path.name}.tmp"
  with writing(path):
    temporary.write_text(text)
    temporary.replace(path)
