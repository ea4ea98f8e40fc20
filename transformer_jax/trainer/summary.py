"""What is said at the end of a run: where the model is, the next command to type, and what was planned of its work."""

import os
import shlex

from etils import epath

from transformer_jax import registry
from transformer_jax.analysis import plan
from transformer_jax.config import Config
from transformer_jax.data.corpus import example_of
from transformer_jax.runtime import devices

LOG = "train.log"

# By the command of a model's family.
_NEXT = {
  "translate": "transformer-jax translate --workdir {} < FILE",
  "generate": "transformer-jax generate --workdir {} --prompt TEXT",
  "classify": "transformer-jax classify --workdir {} < FILE",
  "train --config.train.init_from": "transformer-jax train --config.train.init_from={}",
  "transformer_jax.tasks.features": "python -c 'from transformer_jax.tasks.features import Features; help(Features)'",
}


def short_path(workdir: epath.Path) -> str:
  """The path of a run folder as a user would write it from here, quoted for a shell."""
  path, here = os.fspath(workdir), os.getcwd()
  return shlex.quote(os.path.relpath(path, here) if path.startswith(f"{here}{os.sep}") else path)


def next_command(config: Config, workdir: epath.Path) -> str:
  """The command to type when a run is done."""
  command = registry.family(registry.name_of(config.model)).command
  template = _NEXT.get(command, command)
  if command == "translate" and (example := example_of(config.data)):
    template = f'echo "{example}" | transformer-jax translate --workdir {{}}'
  return template.format(short_path(workdir))


def planned_and_seen(config: Config, updates: int, seconds: float) -> str:
  """What `plan` says of so many updates, beside what they took."""
  count = devices.device_count()
  operations, memory = plan.flops(config).step * updates, plan.memory(config, count).total
  used, by = devices.peak_memory()
  return (
    f"planned: {operations:.3g} operations in {updates:,} updates, {plan.gigabytes(memory)} on a device; "
    f"seen: {seconds:,.0f} seconds, {operations / seconds / count:.3g} operations/s a device, "
    f"{plan.gigabytes(used)} in {by}"
  )
