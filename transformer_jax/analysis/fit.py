"""The paper's batch in a device's memory: how many micro-batches, and what is computed again."""

import bisect
import dataclasses
import functools

from transformer_jax.analysis import requirements
from transformer_jax.config import Config
from transformer_jax.model.config import ModelConfig, Remat
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.sizes import gigabytes

_SHORTEST_ROW = 64  # holds most sentences
_PAPER_BATCH = 25_000  # source tokens and as many target tokens (§5.1)
_OPERATIONS_PER_BYTE = 300  # of an accelerator, see `cost`


def fit(config: Config, budget: int, devices: int = 1) -> Config:
  """The config with the paper's batch of 25,000 tokens per side, in `budget` bytes on each device.

  For each kind of rematerialisation it has as few micro-batches as fit. Of these
  it takes the one with the lowest `cost`. The row length is halved, to 64 at least, only if
  not even one row at a time fits, because longer sentences are then left out.

  Raises:
    InputError: nothing fits.
  """
  row_length = config.data.row_length
  shortest = min(row_length, max(_SHORTEST_ROW, config.data.max_length))
  multiple = 2 if config.model.needs_cudnn else 1  # cuDNN needs an even length
  shortest += shortest % multiple
  in_one_part = dataclasses.replace(config, train=dataclasses.replace(config.train, accumulation=1))
  least = requirements.state(in_one_part).total
  while row_length >= shortest and least <= budget:
    fitted = [_with_fewest_parts(kind, budget, devices, row_length) for kind in _kinds_of_remat(config)]
    if choices := [choice for choice in fitted if choice]:
      return min(choices, key=functools.partial(cost, devices=devices))
    half = row_length // 2 // multiple * multiple
    row_length = max(half, shortest) if row_length > shortest else 0
  alone, rest = " alone", ""
  if least <= budget:
    alone, rest = "", f", and what is left has no room for a row of {shortest} tokens"
  raise InputError(
    f"the model does not fit in {gigabytes(budget)}: parameters, gradients and optimizer{alone} take "
    f"{gigabytes(least)}{rest}"
  )


def cost(config: Config, devices: int = 1) -> float:
  """The time of an update on one device in operations: those of all matmuls, and those missed for memory.

  Each micro-batch reads the parameters twice, writes their gradients, and reads
  and writes the sum of gradients. An accelerator computes about 300 operations
  in the time of a byte (an H100 has 990e12 in bfloat16 and 3.35e12 bytes a second).
  """
  parts, moved = config.train.accumulation, 5 * requirements.bytes_of(requirements.parameter_shapes(config.model))
  return requirements.flops(config, devices).step / devices + _OPERATIONS_PER_BYTE * parts * moved


def _kinds_of_remat(config: Config) -> list[Config]:
  """The config with each kind of rematerialisation, or the config alone if its model has none."""
  if not isinstance(config.model, ModelConfig):
    return [config]
  return [dataclasses.replace(config, model=dataclasses.replace(config.model, remat=remat)) for remat in Remat]


def _with_fewest_parts(config: Config, budget: int, devices: int, row_length: int) -> Config | None:
  """The paper's batch in as few micro-batches as fit in `budget` bytes; None if one row at a time does not fit."""
  rows = max(1, round(_PAPER_BATCH / row_length / devices)) * devices
  choices = [_with_batch(config, row_length, rows, parts) for parts in range(1, rows // devices + 1)]

  def fits(choice: Config) -> bool:
    return requirements.memory(choice, devices).total <= budget

  # Two micro-batches need a second sum of gradients. Beyond two, more micro-batches need less memory.
  best = 0 if fits(choices[0]) else bisect.bisect_left(choices, True, lo=1, key=fits)
  return choices[best] if best < len(choices) else None


def _with_batch(config: Config, row_length: int, rows: int, accumulation: int) -> Config:
  return dataclasses.replace(
    config,
    data=dataclasses.replace(config.data, row_length=row_length),
    train=dataclasses.replace(config.train, batch_tokens=rows * row_length, accumulation=accumulation),
  )
