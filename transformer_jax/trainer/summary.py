"""The report at the end of a run: the model's folder, the next command, and the planned and actual work."""

import os
import re
import shlex
from contextlib import suppress

from etils import epath

from transformer_jax import registry
from transformer_jax.analysis import requirements
from transformer_jax.config import Config
from transformer_jax.data.corpus import example_of
from transformer_jax.data.tagged import tags_of
from transformer_jax.runtime import devices
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.sizes import gigabytes

LOG = "train.log"

# The next command for each command of a model family.
_NEXT = {
  "translate": "transformer-jax translate --workdir {} < FILE",
  "generate": "transformer-jax generate --workdir {} --prompt TEXT",
  "classify": "transformer-jax classify --workdir {} < FILE",
  "train --config.train.init_from": "transformer-jax train --config=bert:classify --config.train.init_from={} "
  "--workdir NEW --config.model.labels=LABEL,LABEL --config.data.train=TRAIN.tsv --config.data.validation=VALID.tsv",
  "transformer_jax.tasks.features": "python -c 'from transformer_jax.tasks.features import Features; help(Features)'",
}


def short_path(workdir: epath.Path) -> str:
  """The path of a run folder, relative to the current folder if it is inside, quoted for a shell."""
  path = os.fspath(workdir)
  with suppress(FileNotFoundError):  # the current folder may be gone
    here = os.getcwd()
    path = os.path.relpath(path, here) if path.startswith(f"{here}{os.sep}") else path
  return shlex.quote(f"./{path}" if path.startswith(("-", "~")) else path)  # else a flag, or the home folder


def next_command(config: Config, workdir: epath.Path, *, best: bool = False) -> str:
  """The command to use the model of a finished run with; `best` chooses its best checkpoint, not the last one."""
  command, path = registry.command_of(config.model), short_path(workdir)
  path += " --step best" if best and command in ("translate", "generate", "classify") else ""
  if command == "translate" and (tags := tags_of(config.data)):  # of a stranger's run they may be any text
    tag = re.sub(r"[/&\\]", r"\\\g<0>", tags[0])
    return f"sed {shlex.quote(f's/^/{tag} /')} FILE | transformer-jax translate --workdir {path}"
  if command == "translate" and (example := example_of(config.data)):
    return f'echo "{example}" | transformer-jax translate --workdir {path}'
  return _NEXT.get(command, command).replace("{}", path)


def planned_and_seen(config: Config, updates: int, seconds: float) -> str:
  """The planned operations and memory of `updates` updates, and their actual time and memory."""
  count = devices.device_count()
  used, by = devices.peak_memory()
  try:
    operations, memory = requirements.flops(config, count).step * updates, requirements.memory(config, count).total
  except InputError as error:  # of a model of another package
    return f"planned: not known, {error}; seen: {seconds:,.0f} seconds, {gigabytes(used)} in {by}"
  return (
    f"planned: {operations:.3g} operations in {updates:,} updates, {gigabytes(memory)} on a device; "
    f"seen: {seconds:,.0f} seconds, {operations / seconds / count:.3g} operations/s per device, "
    f"{gigabytes(used)} in {by}"
  )
