"""The run folder, which has everything needed to resume training or to decode: its place, and how it is written.

config.json       the experiment
tokenizer.model   SentencePiece; other files in its place, see `data/tokenizers.py`
provenance.json   data, versions, machines and settings of JAX that the run has seen, and what it began with
SHA256SUMS        digests of these, see `digests`
checkpoints/STEP  see `checkpoint_files`; in a folder that `export` or `import` wrote, model.safetensors
metrics.jsonl     one line a log, and tensorboard/ with the same curves
report.html       a page about the run, and train.log, its planned and measured work; both for people
"""

import contextlib
import errno
import json
import os
import re
import sys
from datetime import UTC, datetime

from etils import epath

from transformer_jax.config import Config, serialization
from transformer_jax.data import sentencepiece_tokenizer, tokenizer_pair
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.data.tokenizers import FILES
from transformer_jax.runs import digests, metrics_file, params_file
from transformer_jax.runtime import devices, untrusted
from transformer_jax.runtime.errors import InputError, first_line
from transformer_jax.runtime.files import path_of, remove_left_behind, same_file, temporary_beside, write_new
from transformer_jax.runtime.texts import is_text
from transformer_jax.runtime.values import Json, JsonObject

CONFIG, PROVENANCE = "config.json", "provenance.json"
CHECKPOINTS = "checkpoints"
REPORT = "report.html"
_TRIES = 100


def make_folder(workdir: epath.Path, flag: str) -> None:
  """Makes a run folder if it is not there, and checks that it can be written.

  Raises:
    InputError: it cannot be written; the message names the `flag` that chose it.
  """
  try:
    for _ in range(_TRIES):  # another process may remove it before it is written
      workdir.mkdir(parents=True, exist_ok=True)
      probe = temporary_beside(workdir / "probe")
      with contextlib.suppress(FileNotFoundError):
        write_new(probe, b"")
        probe.unlink()
        return
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
  except OSError as error:
    raise InputError(f"the run folder {workdir} cannot be written: {error.strerror}; choose another {flag}") from error


def is_part(workdir: epath.Path, path: epath.Path) -> bool:
  """Whether a path is one of the files that a run consists of; a report or a translation beside them is not."""
  own = (CONFIG, PROVENANCE, digests.FILE, params_file.FILE, metrics_file.FILE, *FILES)
  inside = path.parent.resolve()
  if any(same_file(folder, workdir / CHECKPOINTS) for folder in (inside, *inside.parents)):
    return True
  return any(same_file(path, workdir / name) for name in own)


def checkpoint_names(workdir: epath.Path) -> set[str]:
  """The names of the folders that look like finished checkpoints, of which none is opened."""
  folder = workdir / CHECKPOINTS
  try:
    names = {path.name for path in folder.iterdir() if path.name.isascii() and path.name.isdigit()}
  except FileNotFoundError:
    return set()
  except NotADirectoryError as error:
    raise InputError(f"{folder} is a file, but must be the folder of the checkpoints: copy the run again") from error
  if str(folder).startswith("gs://"):  # where nothing can be renamed, so that orbax writes this file when all is there
    return {name for name in names if (folder / name / "commit_success.txt").exists()}
  return names


def now() -> str:
  """The present time, as entries of the provenance and lines of a log have it."""
  return datetime.now(UTC).isoformat(timespec="seconds")


def entry(**values: Json) -> JsonObject:
  """An entry of the provenance with the present time."""
  return {"time": now(), **values}


def begin_run(workdir: epath.Path, config: Config, tokenizer: Tokenizer, history: list[JsonObject]) -> None:
  """Writes the tokenizer, the provenance and, last, the config, which makes the folder a run folder.

  A start that failed before the first checkpoint may have left another kind of tokenizer. Its files are deleted.
  """
  if devices.is_main_host():
    remove_left_behind(workdir)
    contents = {
      **tokenizer.files(),
      PROVENANCE: f"{json.dumps(history, indent=2)}\n".encode(),
      CONFIG: serialization.to_json(config).encode(),
    }
    digests.write(workdir, contents, outdated=set(FILES) - set(contents))


def require_no_other_files(workdir: epath.Path, config: Config) -> None:
  """Checks that a new run replaces no file of another program, or of the user.

  Args:
    workdir: the folder, in which no run has a checkpoint.
    config: the new run's; the files of `config.data.tokenizer` may stand where the run writes the same.

  Raises:
    InputError: a file is there that no run has written.
  """
  if not (workdir / digests.FILE).exists() and _is_of_a_run(workdir):
    return  # of an older version, which wrote no digests
  own = digests.listed(workdir)
  if CONFIG in own:
    own |= {metrics_file.FILE, REPORT}
  names, paths = (sentencepiece_tokenizer.FILE,), [config.data.tokenizer]
  if len(config.model.vocab_sizes) > 1:
    names, paths = (tokenizer_pair.SOURCE, tokenizer_pair.TARGET), config.data.tokenizer.split(",")
  chosen = {name: os.path.expanduser(path) for name, path in zip(names, paths, strict=False)}
  for name in (CONFIG, PROVENANCE, metrics_file.FILE, REPORT, *FILES):
    path = workdir / name
    is_chosen = name in chosen and same_file(path, chosen[name])
    if path.exists() and name not in own and not is_chosen:
      raise InputError(
        f"{workdir} has a {name} that no run has written, and a new run would replace it: use another --workdir"
      )


def _is_of_a_run(workdir: epath.Path) -> bool:
  """Whether the folder has the config of a run, and the vocabulary and provenance that are written before it."""
  try:
    content = untrusted.read_json(workdir / CONFIG)
    return isinstance(content, dict) and bool(serialization.from_dict(content)) and (workdir / PROVENANCE).exists()
  except (OSError, InputError):
    return False


def _is_utf8(path: str) -> bool:
  """Whether Python writes a name in UTF-8, as the library of the arrays does, and not in the locale's encoding."""
  try:
    return os.fsencode(path) == path.encode()
  except UnicodeEncodeError:  # bytes that are no text, or text that the locale lacks
    return False


def folder_of(workdir: str | os.PathLike) -> epath.Path:
  """The absolute path of a run folder, as orbax wants it.

  Raises:
    InputError: orbax cannot write its checkpoints there, or would write them elsewhere; or it is in a bucket out of
      reach.
  """
  if "://" in os.fspath(workdir):
    require_reachable(path := path_of(workdir))
    return path
  path = os.path.abspath(os.path.expanduser(workdir))
  if not _is_utf8(path):
    locale = ", or set PYTHONUTF8=1" if is_text(path) or sys.getfilesystemencoding() != "utf-8" else ""
    raise InputError(
      f"the run folder {path!a} has a name that is not UTF-8, as checkpoints ask for: choose an ASCII name{locale}"
    )
  # Parts of a checkpoint are looked for by a pattern, which could also match files of another run. The library of its
  # arrays reads a backslash as a slash.
  if found := re.search(r"[\\*?]|\[[^/]+\]", path):
    raise InputError(
      f"the run folder {path} has {found[0]} in its path, which would hide its checkpoints or mix them up "
      "with those of other runs: choose a path without backslashes, square brackets, * and ?"
    )
  return path_of(path)


def require_reachable(path: epath.Path) -> None:
  """Checks that a path outside of this machine, as in a bucket, can be reached.

  Raises:
    InputError: a library for it is missing, or access is denied.
  """
  try:
    path.exists()
  except Exception as error:  # each storage has errors of its own
    raise InputError(
      f"cannot reach {path}: {first_line(error)}; for gs:// install etils[epath-gcs] and log in, or use a local path"
    ) from error
