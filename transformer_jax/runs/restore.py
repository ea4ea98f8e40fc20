"""What a run has learned: its vocabulary and last parameters, to decode with or to begin another run with."""

import dataclasses
import os
from typing import Any

import jax
import jax.numpy as jnp

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.runs import checkpoint, run_folder
from transformer_jax.runtime import devices
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.progress import say
from transformer_jax.training.step import Params


def load_for_decoding(
  workdir: str | os.PathLike, command: str | None = "translate", *, accept_edits: bool = False
) -> tuple[Config, Tokenizer, Params, int]:
  """Config, tokenizer, the parameters of the last checkpoint on every local device, and its step.

  The parameters are their moving average where the checkpoint has one.

  Args:
    workdir: the run folder.
    command: for which its model must be; None for any.
    accept_edits: files of the folder that were edited by hand count.

  Raises:
    InputError: not a run folder, a damaged one, one of a model for something else, or no finished checkpoint in it; or
      JAX finds no device.
    RunError: every checkpoint is damaged.
  """
  devices.require_devices()
  folder = run_folder.folder_of(workdir)
  config = run_folder.read_config(folder, accept_edits=accept_edits)
  if command is not None:
    registry.require_command(config.model, command, folder)
  tokenizer = run_folder.read_tokenizer(folder, accept_edits=accept_edits)
  if tokenizer.vocab_size != config.model.vocab_size:
    raise InputError(
      f"{folder / run_folder.TOKENIZER} has {tokenizer.vocab_size} pieces, but {folder / run_folder.CONFIG} says "
      f"{config.model.vocab_size}: take both from one run"
    )

  def read(step: int) -> Params:
    item = checkpoint.item_to_decode_with(folder, step, config)
    return checkpoint.read_item(
      folder, step, item, devices.abstract_on_devices(checkpoint.params_like(folder, step, item, config))
    )

  found = checkpoint.newest_whole(folder, read)
  if found is None:
    raise InputError(f"{folder} has no finished checkpoint yet: train.py --workdir={folder} makes one")
  step, params = found
  return config, tokenizer, params, step


def tokenizer_to_begin_with(config: Config, *, accept_edits: bool = False) -> Tokenizer:
  """The vocabulary of a new run: of the run in `config.train.init_from`, of `config.data.tokenizer`, or learned.

  Args:
    config: of the new run.
    accept_edits: files of the folder `init_from` that were edited by hand count.

  Raises:
    InputError: `init_from` is no run folder, a vocabulary has another size than the model's, or two are given that
      differ.
  """
  workdir, size = config.train.init_from, config.model.vocab_size
  if not workdir:
    if not config.data.tokenizer:
      say(f"learning a vocabulary of {size:,} pieces")
    return registry.task(config.model).learn_tokenizer(config)
  folder = run_folder.folder_of(workdir)
  run_folder.read_config(folder, accept_edits=accept_edits)
  tokenizer = run_folder.read_tokenizer(folder, accept_edits=accept_edits)
  if tokenizer.vocab_size != size:
    raise InputError(
      f"config.model.vocab_size is {size}, but the run in {workdir} has {tokenizer.vocab_size} pieces: "
      f"set config.model.vocab_size={tokenizer.vocab_size}"
    )
  chosen = config.data.tokenizer
  if chosen and Tokenizer.load(chosen).fingerprint() != tokenizer.fingerprint():
    raise InputError(f"config.data.tokenizer: {chosen} is not the vocabulary of the run in {workdir}: leave it empty")
  return tokenizer


def params_from(config: Config, params: Params, *, accept_edits: bool = False) -> Params:
  """`params` of a new run, and in their places those of the run in `config.train.init_from` with their name and shape.

  A table of positions of which the other run can have learned only the first rows begins with these, again and again:
  they are better than random ones (Beltagy et al. 2020, §5).

  Says what is new or repeated, and which options of both models differ: some of them, as where LayerNorm stands, change
  what the same parameters mean.

  Raises:
    InputError: not a run folder, or there are none such.
  """
  workdir, model = config.train.init_from, config.model
  other_config, _, others, step = load_for_decoding(workdir, None, accept_edits=accept_edits)
  found = dict(jax.tree_util.tree_leaves_with_path(others))
  new: list[str] = []
  repeated: list[str] = []

  def choose(path: Any, random: jax.Array) -> jax.Array:
    other, names = found.get(path), [key.key for key in path]
    if other is not None and _is_of_positions(names) and other.shape[1:] == random.shape[1:]:
      # Of a run that was itself begun with another's parameters, all rows.
      learned = len(other) if other_config.train.init_from else min(len(other), other_config.data.longest)
      if learned < config.data.row_length:
        repeated.append(f"{'/'.join(names)} from row {learned} on")
      return other[jnp.arange(len(random)) % learned]
    if other is not None and other.shape == random.shape:
      return other
    new.append("/".join(names))
    return random

  chosen = jax.tree_util.tree_map_with_path(choose, params)
  if len(new) == len(jax.tree.leaves(params)):
    raise InputError(f"config.train.init_from: the run in {workdir} has no parameters of this model's names and shapes")
  say(f"beginning with the parameters of step {step} of {workdir}; new: {', '.join(new) or 'none'}")
  if repeated:
    say(f"repeats the rows before, as that run has no others: {', '.join(repeated)}")
  here, there = dataclasses.asdict(model), dataclasses.asdict(other_config.model)
  if differing := [
    f"config.model.{key} is {here[key]}, was {there[key]}" for key in here if key in there and here[key] != there[key]
  ]:
    say(f"this model is not quite that of {workdir}: {'; '.join(differing)}")
  return chosen


def _is_of_positions(names: list[str]) -> bool:
  """Whether parameters of this path are a table with a row for each position."""
  return len(names) > 1 and names[-2].endswith("positions") and names[-1] == "table"
