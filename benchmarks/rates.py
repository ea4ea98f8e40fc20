"""The time of an update of several configs, each in a separate process, in turns.

`timed_runs.py` uses it to give models equal time. The load of a machine varies, so a model that is trained under load
would get fewer updates; in turns, all models meet the same load.
"""

import functools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import report
from side import Side

from transformer_jax.config import Config, flags, serialization
from transformer_jax.data import pipeline
from transformer_jax.runtime.files import write_atomically

ROUNDS = 7
STEPS = 20


def measured(arguments: Mapping[str, list[str]], keys: list[str], file: Path) -> dict[str, float]:
  """The seconds of an update of each config, from earlier calls or else measured now.

  Args:
    arguments: name -> the flags of train.py.
    keys: the keys that were changed in all configs.
    file: the JSON file of the measurements. Configs that it does not have are
      measured now, in turns with the first one, and added.

  Returns:
    name -> seconds, for all configs of the file: the median time of the first
    config, times the median of the ratios to the first config's time in the
    same round.
  """
  found = json.loads(file.read_text()) if file.exists() else {}
  if found and found.get("keys", []) != keys:
    sys.exit(f"{file} is of {found.get('keys')}, not of {keys}: choose another folder")
  first = next(iter(arguments))
  known = [group["seconds_of_an_update"] for group in (found, *found.get("later", [])) if group]
  if missing := [name for name in arguments if not any(name in rounds for rounds in known)]:
    configs = {name: config_of(arguments[name]) for name in dict.fromkeys([first, *missing])}
    with tempfile.TemporaryDirectory() as scratch:
      known.append(measure(configs, Path(scratch)))
    group = {**report.context(), "keys": keys, "seconds_of_an_update": known[-1]}
    found = {**found, "later": [*found.get("later", []), group]} if found else group
    write_atomically(file, f"{json.dumps(found, indent=1)}\n".encode())
  # A name of an earlier group keeps its rate: the first of each group alone is measured again.
  seconds: dict[str, float] = {}
  for rounds in known:
    for name, times in rounds.items():
      seconds.setdefault(name, report.median(known[0][first]) * report.ratio(times, rounds[first]))
  return seconds


def config_of(arguments: list[str]) -> Config:
  """The config of the flags --config and --config.KEY; other flags are left out."""
  [given] = [argument.removeprefix("--config=") for argument in arguments if argument.startswith("--config=")]
  keys = [argument for argument in arguments if argument.startswith("--config.")]
  return flags.read_config(given, flags.read_keys(keys))


def measure(configs: Mapping[str, Config], folder: Path) -> dict[str, list[float]]:
  """The seconds of an update, by name and round."""
  sides = {}
  for name, config in configs.items():
    report.progress(f"{name}: compiling")
    sides[name] = side(name, config, folder / name)
    sides[name].ask(steps=STEPS)
  turns = {name: functools.partial(turn, side) for name, side in sides.items()}
  rounds = report.interleave(turns, ROUNDS)
  for each in sides.values():
    each.close()
  return rounds


def side(name: str, config: Config, folder: Path) -> Side:
  """A process that trains this config; all texts are the same, and so is their vocabulary."""
  folder.mkdir()
  vocabulary = folder.parent / "tokenizer.model"
  if not vocabulary.exists():
    vocabulary.write_bytes(pipeline.learn_tokenizer(config.data, config.model.vocab_size).to_bytes())
  shutil.copy(vocabulary, folder)
  values = serialization.to_dict(config)
  values["data"]["cache_dir"] = str(folder)
  (folder / "job.json").write_text(json.dumps({"config": values}))
  # The device is that of train.py. All sides exist at once, so none may reserve a GPU's memory.
  device = {"JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS", ""), "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
  options = [str(config.data.row_length), config.model.dtype.value]
  return Side(name, sys.executable, "trainers/ours.py", folder, options, **device)


def turn(side: Side) -> float:
  return side.ask(steps=STEPS)["seconds"] / STEPS
