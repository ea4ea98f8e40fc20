"""The choice of the checkpoint to read, also while another process trains the run."""

import contextlib
import json
import math
import time
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from etils import epath

from transformer_jax.runs import checkpoint_files as files
from transformer_jax.runs import locks, untrusted_arrays
from transformer_jax.runs.run_folder import CHECKPOINTS, CONFIG, checkpoint_names
from transformer_jax.runs.steps import BEST, LAST, Finished, Step, require_step
from transformer_jax.runtime import untrusted
from transformer_jax.runtime.errors import InputError, RunError, first_line, is_out_of_memory
from transformer_jax.runtime.progress import say

Item = TypeVar("Item")

# Training replaces a checkpoint in the time that it takes to write one.
_SECONDS_BETWEEN_LOOKS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)


class CannotRead(RunError):
  """A checkpoint that may be whole, but that the machine cannot read now."""


class Look(NamedTuple, Generic[Item]):
  """What one look at the checkpoints of a run found.

  Attributes:
    found: the newest step that can be read, and what was read; None where there is no such step.
    damaged: the newer steps, and why each cannot be read.
    of_other_model: whether all of these have the arrays of another model.
  """

  found: tuple[int, Item] | None
  damaged: dict[int, str]
  of_other_model: bool = False


def finished(workdir: epath.Path) -> Finished:
  """The checkpoints that are there now.

  Raises:
    RunError: a checkpoint's description is damaged.
  """
  steps = tuple(files.finish_times(workdir))
  return Finished(steps, max(steps, default=None), _best(workdir, steps))


def _best(workdir: epath.Path, steps: Sequence[int]) -> int | None:
  numbers: dict[int, float] = {}
  for step in steps:
    with contextlib.suppress(ValueError):  # training says so when it goes on
      number = rank_of(workdir, step)
      if number is not None and math.isfinite(number):
        numbers[step] = number
  # Of equal ones the newest, as that is the one that training keeps.
  return min(numbers, key=lambda step: (numbers[step], -step), default=None)


def rank_of(workdir: epath.Path, step: int) -> float | None:
  """The validation loss that a checkpoint was saved with, or minus its score; None if it has none.

  Raises:
    ValueError: the file that tells is damaged.
  """
  path = files.folder_of(workdir, step) / files.METRICS / files.METRICS
  try:
    values = json.loads(untrusted.read_bytes(path, untrusted.LARGEST_JSON))
    return files.rank({key: float(value) for key, value in values.items()})
  except FileNotFoundError:
    return None
  except (OSError, ValueError, ArithmeticError, TypeError, LookupError, AttributeError, RecursionError) as error:
    raise ValueError(f"{path} has no {files.LOSS}") from error


def newest_intact(
  workdir: epath.Path, read: Callable[[int], Item], step: Step = LAST, said: int | None = None
) -> tuple[int, Item] | None:
  """The step to read and the result of `read` for it; None if the run has no checkpoint.

  Args:
    workdir: the run folder.
    read: reads the checkpoint of a step.
    step: a number; `best`, by validation; or `last`, in whose place an older one is read where it is damaged.
    said: the step that the user was told of; None if there was none.

  Raises:
    InputError: there is no such step.
    RunError: there are checkpoints, and none of those that are asked for can be read.
  """
  seen = retried(workdir, lambda: look(workdir, step, read), lambda seen: bool(seen.damaged))
  found = intact(workdir, seen)
  if found and (seen.damaged or said not in (None, found[0])):
    say(f"the checkpoint of step {found[0]} is used in its place")
  return found


def intact(workdir: epath.Path, seen: Look[Item]) -> tuple[int, Item] | None:
  """What a look found; says which checkpoints are damaged.

  Raises:
    InputError: all are of another model than the config's.
    RunError: all are damaged.
  """
  if seen.found is None and seen.of_other_model:
    why = next(iter(seen.damaged.values()))
    raise InputError(
      f"the checkpoints in {workdir} are of another model than {CONFIG} beside them ({why}): "
      f"bring back the {CONFIG} that they were trained with"
    )
  for step, reason in seen.damaged.items():
    say(f"the checkpoint of step {step} is damaged and not used: {reason}")
  if seen.found is None and seen.damaged:
    others = [str(step) for step in files.finish_times(workdir) if step not in seen.damaged]
    if others:
      raise RunError(
        f"the checkpoint of step {min(seen.damaged)} in {workdir} is damaged, or cannot be read here: "
        f"choose another step, one of {', '.join(others)}"
      )
    raise RunError(f"every checkpoint in {workdir} is damaged, or cannot be read here: copy the run again")
  return seen.found


def look(workdir: epath.Path, step: Step, read: Callable[[int], Item]) -> Look[Item]:
  """Reads the checkpoint that is asked for; of `last` the newest that can be read.

  Raises:
    CannotRead: as `read` does.
    InputError: there is no such step.
  """
  damaged: dict[int, str] = {}
  others = 0
  for candidate in candidates(workdir, step):
    try:
      return Look((candidate, read(candidate)), damaged)
    except Exception as error:  # damaged or hostile files can make orbax raise any
      if is_out_of_memory(error) or isinstance(error, CannotRead):
        raise
      damaged[candidate] = first_line(error)
      others += isinstance(error, untrusted_arrays.ModelMismatch)
  return Look(None, damaged, of_other_model=0 < others == len(damaged))


def candidates(workdir: epath.Path, step: Step) -> list[int]:
  """The steps to try, one after another."""
  require_step(step)
  there = tuple(files.finish_times(workdir))
  if step == LAST or not there:
    return sorted(there, reverse=True)
  steps = ", ".join(map(str, there))
  if step == BEST:
    best = _best(workdir, there)
    if best is None:
      raise InputError(
        f"no checkpoint in {workdir} has a validation loss, so none is the best: choose the step `last` or one "
        f"of {steps}; the loss is measured every config.evaluate.every steps, and saved every config.train.save_every; "
        "an average of checkpoints has none"
      )
    return [best]
  if step not in there:
    raise InputError(f"{workdir} has no checkpoint of step {step}: it has those of steps {steps}")
  return [int(step)]


def retried(workdir: epath.Path, look: Callable[[], Item], failed: Callable[[Item], bool]) -> Item:
  """What `look` finds; it looks again where it failed while training replaced checkpoints.

  Raises:
    RunError: it was so in every look.
  """
  with locks.reading(workdir / CHECKPOINTS):
    for seconds in (*_SECONDS_BETWEEN_LOOKS, 0.0):
      before = checkpoint_names(workdir)
      found = look()
      if not failed(found) or checkpoint_names(workdir) == before:
        return found
      time.sleep(seconds)
  raise RunError(
    f"no checkpoint in {workdir} could be read, as training replaces them before they are: "
    "give the same command again, or raise config.train.save_every or config.train.keep"
  )
