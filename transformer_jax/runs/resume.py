"""Resuming a run: whether a folder holds one, and whether experiment and text are the same."""

import json
import os
from collections.abc import Callable

from etils import epath

from transformer_jax import registry
from transformer_jax.config import BestBy, Config, Decay, Optimizer, TrainConfig, serialization
from transformer_jax.data import tokenizers
from transformer_jax.runs import params_file, run_folder
from transformer_jax.runs.run import Run
from transformer_jax.runs.run import open as open_run
from transformer_jax.runtime import devices, hosts, untrusted
from transformer_jax.runtime.errors import InputError, require_key
from transformer_jax.runtime.progress import say
from transformer_jax.runtime.values import JsonObject
from transformer_jax.runtime.versions import own_version

# Keys that may change between two parts of one run: they do not change what an update computes.
_FREE = {
  *(f"data.{key}" for key in ("train", "validation", "test", "cache_dir", "data_dir", "tokenizer")),
  *(f"train.{key}" for key in ("steps", "log_every", "save_every", "keep", "max_skipped", "accumulation", "patience")),
  *("decode", "evaluate", "debug"),  # and all that is in them
}
# Keys that a validation's BLEU depends on, besides those of the search.
_OF_BLEU = {"evaluate.sentences", "evaluate.tokenize", "evaluate.lowercase"}


def run_to_go_on_with(workdir: epath.Path, config: Config, *, accept_edits: bool = False) -> Run | None:
  """The run that the folder holds, which must have this config; None if a new run begins.

  A run begins with its first checkpoint. One that failed before it does not count.

  Args:
    workdir: the run folder, which is made if it is not there.
    config: what to train with.
    accept_edits: as in `runs.open`.

  Raises:
    InputError: the folder cannot be written, has links to other places or damaged files, it holds averaged parameters,
      a key differs that may not, no run can begin with one, or it would replace a file that is of no run.
  """
  run_folder.make_folder(workdir, "--workdir")
  untrusted.require_own_files(workdir)
  if params_file.has_one(workdir):
    raise InputError(
      f"{workdir} holds exported or imported parameters without an optimizer: use another --workdir; "
      f"config.train.init_from={workdir} begins with these parameters"
    )
  if not run_folder.checkpoint_names(workdir):
    run_folder.require_no_other_files(workdir, config)
    require_new(config)
    return None
  if not (workdir / run_folder.CONFIG).exists():
    raise InputError(
      f"{workdir} has checkpoints but no {run_folder.CONFIG}, so that nothing tells what run they are of: "
      "copy it back, or use another --workdir"
    )
  run = open_run(workdir, accept_edits=accept_edits)
  if run.averaged:
    raise InputError(
      f"{workdir} holds averaged parameters without an optimizer, for decoding only: "
      f"train on in the run that they come from, {run.averaged['run']}, or use another --workdir"
    )
  _require_same(run, config)
  return run


def begun(workdir: str | os.PathLike, *, accept_edits: bool = False) -> Run | None:
  """The run that a folder holds, with any config; None if none has begun.

  Raises:
    InputError: the folder's files are damaged, or it has links to other places.
  """
  folder = run_folder.folder_of(workdir)
  untrusted.require_own_files(folder)
  is_run = (folder / run_folder.CONFIG).exists() and run_folder.checkpoint_names(folder)
  return open_run(folder, accept_edits=accept_edits) if is_run else None


def config_of_run(workdir: str | os.PathLike, *, accept_edits: bool = False) -> Config | None:
  """The config of the run in a folder, which `train` uses if no other is given; None if there is none.

  Every host calls it. A run that failed before its first checkpoint has one, too.

  Args:
    workdir: the run folder.
    accept_edits: as in `runs.open`.

  Raises:
    InputError: the folder's files are damaged, or it has links to other places.
  """

  def find() -> Run | None:
    folder = run_folder.folder_of(workdir)
    return open_run(folder, accept_edits=accept_edits) if (folder / run_folder.CONFIG).exists() else None

  return config_from_main(find)


def config_from_main(find: Callable[[], Run | None]) -> Config | None:
  """The config of the run that the main host finds; every host calls it, and ends if the main host raises an error."""
  content = b""
  with hosts.collective_errors():
    if devices.is_main_host() and (run := find()):
      content = serialization.to_json(run.config).encode()
  content = hosts.broadcast_bytes(content)
  return serialization.from_dict(json.loads(content)) if content else None


def history_of(run: Run, text: str) -> list[JsonObject]:
  """What the earlier starts of a run depended on.

  Args:
    run: the run that goes on.
    text: the fingerprint of the packed training text.

  Raises:
    InputError: the training text is no longer the one that the run was begun with.
  """
  history = run.provenance
  if not history or "data" not in history[0]:
    path = run.path / run_folder.PROVENANCE
    raise InputError(f"{path} does not say with which text the run was begun: use another --workdir")
  if history[0]["data"] != text:
    versions = history[0].get("versions")
    version = versions.get("transformer_jax") if isinstance(versions, dict) else None
    other = f" (transformer_jax {version} began the run, and may have cut the same text into other tokens)"
    raise InputError(
      f"config.data.train now gives another text than that which the run in {run.path} was begun with: "
      "give it the same text (a file that was compressed or unpacked since counts as another), or use another --workdir"
      f"{other if version not in (None, own_version()) else ''}"
    )
  return history


def require_new(config: Config) -> None:
  """Raises InputError for what only a new run must fulfil; older runs may resume without it."""
  train, data = config.train, config.data
  require_key(train, "train.seed", train.seed < 2**32, "below 2 ** 32, as JAX's keys are no longer")
  if not config.model.translates:
    require_key(data, "data.max_length", data.max_length == 0, "0: no text is too long to be read")
  rows = train.batch_tokens // data.row_length
  expected = f"at most {rows}, the rows of a batch (config.train.batch_tokens / config.data.row_length)"
  require_key(train, "train.accumulation", train.accumulation <= rows, expected)
  _require_effects(config)


def _require_effects(config: Config) -> None:
  """Raises InputError for a key that would have no effect beside the others."""
  train, model = config.train, config.model
  rates = [getattr(model, name) for name in ("dropout", "attention_dropout") if hasattr(model, name)]
  differ = not train.r_drop or any(rates) or not rates
  require_key(train, "train.r_drop", differ, "0 for a model without dropout, whose two passes are the same")
  validates = bool(config.data.validation) or train.best_by is BestBy.LOSS
  require_key(train, "train.best_by", validates, "loss without config.data.validation")
  scored = not config.data.has_trees or train.best_by is BestBy.LOSS
  require_key(train, "train.best_by", scored, "loss for trees, whose BLEU is high, however wrong they are")
  decays = train.optimizer is not Optimizer.ADAMW or train.weight_decay > 0
  require_key(train, "train.optimizer", decays, "adam if config.train.weight_decay is 0, as adamw then is the same")
  counts = not train.patience or config.evaluate.every <= train.steps
  require_key(train, "train.patience", counts, "0 if config.evaluate.every is more than config.train.steps")
  default = TrainConfig.sampling_k
  samples = train.scheduled_sampling is not Decay.NONE or train.sampling_k == default
  require_key(train, "train.sampling_k", samples, f"{default:g}, its default, without config.train.scheduled_sampling")
  linear = not train.sampling_least or train.scheduled_sampling is Decay.LINEAR
  require_key(train, "train.sampling_least", linear, "0 unless config.train.scheduled_sampling is linear")


def _require_same(run: Run, config: Config) -> None:
  """Raises InputError if a key differs that changes what an update computes."""
  family, another = registry.name_of(run.config.model), registry.name_of(config.model)
  if family != another:
    raise InputError(
      f"the config is of a {another} model, but the run in {run.path} of a {family}: use another --workdir"
    )
  before = serialization.flat(run.config)
  changed = {key: value for key, value in serialization.flat(config).items() if value != before[key]}
  if fixed := [key for key in changed if not _FREE & {key, key.split(".")[0]}]:
    first, *others = fixed
    names = ", ".join(f"config.{key}" for key in others[:5]) + (", ..." if others[5:] else "")
    more = f"; {names} {'differ' if others[1:] else 'differs'} too" if others else ""
    raise InputError(
      f"config.{first} is {changed[first]!r}, but the run in {run.path} was begun with {before[first]!r}"
      f"{more}: set {'them' if others else 'it'} back, or use another --workdir"
    )
  if "train.steps" in changed:
    _require_steps(run, config)
  if "data.tokenizer" in changed:
    _require_same_vocabulary(run, config)
  for key, value in changed.items():
    say(f"config.{key} is now {value!r}, before {before[key]!r}")
  if "data.validation" in changed:
    say(
      "if config.data.validation is another text now, --step best and early stopping compare two texts, maybe wrongly"
    )
  if config.train.best_by is BestBy.BLEU and any(key in _OF_BLEU or key.startswith("decode.") for key in changed):
    say("--step best and early stopping compare BLEU of two searches or of two kinds now, maybe wrongly")


def _require_steps(run: Run, config: Config) -> None:
  """Raises InputError if the run cannot have this number of steps, which is another than before."""
  steps, made = config.train.steps, run.checkpoints.last or 0
  if config.train.ends_at_last_step:
    raise InputError(
      f"config.train.steps is {steps}, but the run in {run.path} was begun with {run.config.train.steps}, on which "
      f"config.train.schedule={config.train.schedule.value} depends: set it back, or use another --workdir"
    )
  if steps < made:
    raise InputError(f"config.train.steps is {steps}, but the run in {run.path} has made {made}: give {made} or more")


def _require_same_vocabulary(run: Run, config: Config) -> None:
  """Raises InputError if the file of the config's vocabulary, if it names one, holds another than the run's."""
  chosen = config.data.tokenizer
  if chosen and tokenizers.chosen(chosen, *config.model.vocab_sizes).fingerprint() != run.tokenizer.fingerprint():
    raise InputError(
      f"config.data.tokenizer: {chosen} is not the vocabulary that the run in {run.path} was begun with: leave it out"
    )
