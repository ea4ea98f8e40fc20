"""The run folder: everything needed to go on training or to decode.

config.json       the experiment
tokenizer.model   SentencePiece
provenance.json   data, versions and machines that the run has seen
SHA256SUMS        digests of these three, see `digests`
checkpoints/STEP  see `checkpoint`
metrics.jsonl     one line a log, and tensorboard/ with the same curves
"""

import contextlib
import fcntl
import json
import os
import re
import uuid
from collections.abc import Iterator
from typing import Any

from etils import epath

from transformer_jax import registry
from transformer_jax.config import Config, serialization
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.runs import digests
from transformer_jax.runtime import devices, hosts, untrusted
from transformer_jax.runtime.errors import InputError, first_line, require
from transformer_jax.runtime.files import is_text, remove_left_behind, write_new

CONFIG, TOKENIZER, PROVENANCE = "config.json", "tokenizer.model", "provenance.json"
CHECKPOINTS = "checkpoints"

# Keys that may change between two parts of one run: they do not change what an update computes.
_FREE = {
  *(f"data.{key}" for key in ("train", "validation", "test", "cache_dir", "data_dir", "tokenizer")),
  *(f"train.{key}" for key in ("steps", "log_every", "save_every", "keep", "max_skipped", "accumulation")),
  *("decode", "evaluate", "debug"),  # and all that is in them
}


def check_run(workdir: epath.Path, config: Config, *, accept_edits: bool = False) -> bool:
  """Whether the folder holds a run already, which must then be one of this config.

  A run begins with its first checkpoint: one that failed before, as for want of memory, binds nothing.

  Args:
    workdir: the run folder.
    config: to train with.
    accept_edits: what was edited by hand there counts.

  Raises:
    InputError: the folder cannot be written, has links to other places or damaged files, it holds averaged parameters,
      a key differs that may not, or no run can begin with one.
  """
  make_folder(workdir, "--workdir")
  untrusted.require_own_files(workdir)
  if not _has_checkpoint(workdir):
    _require_new(config)
    return False
  if not (workdir / CONFIG).exists():
    raise InputError(
      f"{workdir} has checkpoints but no {CONFIG}, so that nothing tells what run they are of: "
      "copy it back, or use another --workdir"
    )
  begun_with = read_config(workdir, accept_edits=accept_edits)
  for start in read_provenance(workdir, accept_edits=accept_edits):
    if "averaged" in start:
      raise InputError(
        f"{workdir} holds averaged parameters without an optimizer, for decoding only: "
        f"train on in the run that they come from, {start['averaged']['run']}, or use another --workdir"
      )
  _check_same(begun_with, config, workdir)
  return True


def _has_checkpoint(workdir: epath.Path) -> bool:
  folder = workdir / CHECKPOINTS
  return folder.exists() and any(path.name.isdigit() for path in folder.iterdir())


def _require_new(config: Config) -> None:
  """What is asked of a new run only, as older ones went on without it."""
  require(config.train.seed < 2**32, "train.seed", config.train.seed, "below 2 ** 32, as JAX's keys are no longer")
  if not config.model.translates:
    require(config.data.max_length == 0, "data.max_length", config.data.max_length, "0: no text is too long to be read")


@contextlib.contextmanager
def exclusive_lock(workdir: epath.Path) -> Iterator[None]:
  """Keeps others from training in the same folder meanwhile; the lock ends with the process, however that ends.

  Where the file system has no locks there is none.

  Raises:
    InputError: somebody else trains there, or the folder cannot be written.
  """
  with hosts.collective_errors():
    folder = _locked(workdir) if devices.is_main_host() and "://" not in os.fspath(workdir) else None
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
    probe = workdir / f".{uuid.uuid4().hex}.tmp"
    write_new(probe, b"")
    probe.unlink()
  except OSError as error:
    raise InputError(f"the run folder {workdir} cannot be written: {error.strerror}; choose another {flag}") from error


def begin_run(workdir: epath.Path, config: Config, tokenizer: Tokenizer, history: list[dict[str, Any]]) -> None:
  """Writes what the run depends on; the config last, as it makes the folder that of a run."""
  if devices.is_main_host():
    remove_left_behind(workdir)
    contents = {
      TOKENIZER: tokenizer.to_bytes(),
      PROVENANCE: f"{json.dumps(history, indent=2)}\n".encode(),
      CONFIG: serialization.to_json(config).encode(),
    }
    digests.write(workdir, contents)


def _check_same(old: Config, new: Config, workdir: epath.Path) -> None:
  family, another = registry.name_of(old.model), registry.name_of(new.model)
  if family != another:
    raise InputError(
      f"the config is of a {another} model, but the run in {workdir} of a {family}: use another --workdir"
    )
  before = serialization.flat(old)
  for key, value in serialization.flat(new).items():
    if value != before[key] and not _FREE & {key, key.split(".")[0]}:
      raise InputError(
        f"config.{key} is {value!r}, but the run in {workdir} was begun with {before[key]!r}: "
        "set it back, or use another --workdir"
      )


def read_config(workdir: epath.Path, *, accept_edits: bool = False) -> Config:
  """The config of a run, whose folder may come from a stranger.

  Args:
    workdir: the run folder.
    accept_edits: what was edited by hand counts.

  Raises:
    InputError: there is none, it is damaged or malformed, or the folder has links to other places.
  """
  untrusted.require_own_files(workdir)
  try:
    values = _read_json(workdir, CONFIG, accept_edits)
  except FileNotFoundError as error:
    raise InputError(
      f"{workdir} is not a run folder: it has no {CONFIG}; train.py --workdir={workdir} makes one"
    ) from error
  return serialization.from_dict(values)


def config_of_run(workdir: epath.Path, *, accept_edits: bool = False) -> Config | None:
  """The config that a folder holds, to go on with where no other is given; None where there is none. All hosts call it.

  Args:
    workdir: the run folder.
    accept_edits: what was edited by hand counts.

  Raises:
    InputError: it is damaged, or the folder has links to other places.
  """
  content = "null"
  with hosts.collective_errors():
    if devices.is_main_host() and (workdir / CONFIG).exists():
      content = serialization.to_json(read_config(workdir, accept_edits=accept_edits))
  values = json.loads(hosts.bytes_from_main(content.encode()))
  return serialization.from_dict(values) if values else None


def _read_json(workdir: epath.Path, name: str, accept_edits: bool) -> Any:
  most = untrusted.LARGEST_JSON
  return untrusted.json_of(workdir / name, lambda: digests.read(workdir, name, most, accept_edits=accept_edits))


def read_tokenizer(workdir: epath.Path, *, accept_edits: bool = False) -> Tokenizer:
  """The vocabulary of a run.

  Args:
    workdir: the run folder.
    accept_edits: another one, put there by hand, counts.

  Raises:
    InputError: there is none, or it is damaged.
  """
  return Tokenizer.load(
    workdir / TOKENIZER, lambda most: digests.read(workdir, TOKENIZER, most, accept_edits=accept_edits)
  )


def read_history(workdir: epath.Path, data: str, *, accept_edits: bool = False) -> list[dict[str, Any]]:
  """What the earlier starts of a run depended on.

  Args:
    workdir: the run folder.
    data: the fingerprint of the packed training text.
    accept_edits: what was edited by hand counts.

  Raises:
    InputError: the training text is no longer the one that the run was begun with.
  """
  history = read_provenance(workdir, accept_edits=accept_edits)
  if not history or "data" not in history[0]:
    raise InputError(f"{workdir / PROVENANCE} does not say with which text the run was begun: use another --workdir")
  if history[0]["data"] != data:
    raise InputError(
      f"config.data.train now gives another text than that which the run in {workdir} was begun with: "
      "give it the same text, or use another --workdir"
    )
  return history


def read_provenance(workdir: epath.Path, *, accept_edits: bool = False) -> list[dict[str, Any]]:
  """What a run folder comes from: one entry for each start of training, or for an averaging.

  Raises:
    InputError: the file is damaged or malformed.
  """
  path = workdir / PROVENANCE
  entries = _read_json(workdir, PROVENANCE, accept_edits) if path.exists() else []
  if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
    raise InputError(f"{path} must be a list of objects")
  for averaged in (entry["averaged"] for entry in entries if "averaged" in entry):
    steps = averaged.get("steps") if isinstance(averaged, dict) else None
    if not isinstance(steps, list) or not all(isinstance(step, int) for step in steps) or "run" not in averaged:
      raise InputError(f'{path} has an entry whose "averaged" is not of a run and its steps')
  return entries


def folder_of(workdir: str | os.PathLike) -> epath.Path:
  """The path of a run folder, whole, as orbax wants it.

  Raises:
    InputError: orbax cannot write its checkpoints there, or would write them elsewhere, or it is of a bucket out of
      reach.
  """
  if "://" in os.fspath(workdir):
    require_reachable(path := epath.Path(workdir))
    return path
  path = os.path.abspath(os.path.expanduser(workdir))
  if not is_text(path):
    raise InputError(f"the run folder {path!a} has a name that is not UTF-8, as checkpoints ask for: choose another")
  # Parts of a checkpoint are looked for by a pattern, and the library of its arrays reads a backslash as a slash.
  if found := re.search(r"\\|\[.+\]", path):
    raise InputError(
      f"the run folder {path} has {found[0]} in its path, where checkpoints would not be found again: "
      "choose a path without backslashes and square brackets"
    )
  return epath.Path(path)


def require_reachable(path: epath.Path) -> None:
  """That a path which is not of this machine, as of a bucket, can be asked for.

  Raises:
    InputError: a library for it is missing, or who asks is not let in.
  """
  try:
    path.exists()
  except Exception as error:  # each storage has errors of its own
    raise InputError(
      f"cannot reach {path}: {first_line(error)}; for gs:// install etils[epath-gcs] and log in, or use a local path"
    ) from error
