"""The time of an update of several configs, each in a separate process, in turns.

`lineage.py` uses it to give its models equal time. The load of a machine varies, so a model that is trained under load
would get fewer updates; in turns, all models meet the same load.
"""

import functools
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import report
from side import Side

from transformer_jax.config import Config, flags, serialization
from transformer_jax.data import pipeline

ROUNDS = 7
STEPS = 20


def measured(arguments: Mapping[str, list[str]], keys: list[str], file: Path) -> dict[str, float]:
  """The seconds of an update of each config, from an earlier call or else measured now.

  Args:
    arguments: name -> the flags of train.py.
    keys: the keys that were changed in all configs.
    file: the JSON file of the measurements.

  Returns:
    name -> seconds: the median time of the first config, times the median of
    the ratios to the first config's time in the same round.
  """
  if not file.exists():
    with tempfile.TemporaryDirectory() as scratch:
      rounds = measure({name: config_of(given) for name, given in arguments.items()}, Path(scratch))
    file.write_text(json.dumps({**report.context(), "keys": keys, "seconds_of_an_update": rounds}, indent=1) + "\n")
  found = json.loads(file.read_text())
  if found.get("keys", []) != keys:
    sys.exit(f"{file} is of {found.get('keys')}, not of {keys}: choose another folder")
  rounds = found["seconds_of_an_update"]
  first = rounds[next(iter(arguments))]
  return {name: report.median(first) * report.ratio(rounds[name], first) for name in arguments}


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
    pipeline.learn_tokenizer(config.data, config.model.vocab_size).save(vocabulary)
  shutil.copy(vocabulary, folder)
  values = serialization.to_dict(config)
  values["data"]["cache_dir"] = str(folder)
  (folder / "job.json").write_text(json.dumps({"config": values}))
  return Side(name, sys.executable, "trainers/ours.py", folder, [str(config.data.row_length)])


def turn(side: Side) -> float:
  return side.ask(steps=STEPS)["seconds"] / STEPS
