"""The mean of a run's last checkpoints (§6.1: five of the base model, twenty of the big one)."""

import itertools
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime

import jax
import numpy as np
from etils import epath

from transformer_jax.config import Config
from transformer_jax.model.params import Params
from transformer_jax.runs import checkpoint_files as files
from transformer_jax.runs import params_file, reading, restore, run_folder
from transformer_jax.runs.locks import exclusive_lock
from transformer_jax.runs.run import Run
from transformer_jax.runs.run import open as open_run
from transformer_jax.runtime.errors import InputError, RunError, is_out_of_memory, one_line, require_option
from transformer_jax.runtime.progress import Progress

# To empty a folder.
_TRIES, _SECONDS_BETWEEN_TRIES = 20, 0.1


def average(
  workdir: Run | str | os.PathLike,
  output: str | os.PathLike,
  last: int,
  minutes: float | None = None,
  *,
  step: reading.Step = reading.LAST,
) -> list[int]:
  """Writes a run folder whose parameters are the mean of those of a run's last checkpoints.

  The new folder decodes as every run folder does, and cannot be trained on. A checkpoint that the run keeps only
  because it is the best does not count. Neither does one that only a signal asked for, as an uninterrupted run has
  none, unless `step` is its number or the run ends with it. The run's moving average is not used.

  Args:
    workdir: the run folder, or the run that `runs.open` made of it.
    output: the folder to write, which must be new or empty.
    last: how many checkpoints.
    minutes: if given, only checkpoints at least so far apart in time are taken, from the newest backwards.
    step: the newest of them: a step's number, `last`, or `best`, by validation.

  Returns:
    The steps of the checkpoints, newest first.

  Raises:
    InputError: not a run folder, not enough checkpoints in it, or the output cannot be used.
    RunError: a checkpoint cannot be read, or the disk is full.
  """
  require_option("last", last, last > 0, "positive")
  require_option("minutes", minutes, minutes is None or 0 < minutes < math.inf, "positive")
  run, target = open_run(workdir), run_folder.folder_of(output)
  _require_checkpoints(run.path)
  tokenizer, history = run.tokenizer, run.provenance
  _enough(run, last, minutes, step)
  with exclusive_lock(target, "--output"), _filled_or_emptied(target):
    steps, params = _mean_of_last(run, last, minutes, step)
    files.write_params(target, steps[0], params)
    averaged = run_folder.entry(averaged={"run": str(run.path), "steps": steps})
    run_folder.begin_run(target, run.config, tokenizer, [*history, averaged])
  return steps


def _require_checkpoints(workdir: epath.Path) -> None:
  if params_file.has_one(workdir):
    raise InputError(
      f"{workdir} has its parameters in one file, {params_file.FILE}, and no checkpoints to average: give a run that "
      "`train` made, such as one that begins with it (config.train.init_from)"
    )


@contextmanager
def _filled_or_emptied(folder: epath.Path) -> Iterator[None]:
  """Deletes what the body has written into an empty folder if it fails, so that the same command can be given again.

  Raises:
    InputError: the folder is not empty.
  """
  if folder.exists() and any(folder.iterdir()):  # a bucket has no empty folders
    held = "a run" if (folder / run_folder.CONFIG).exists() else "files"
    raise InputError(f"{folder} holds {held} already: choose another --output")
  try:
    yield
  except BaseException:
    for _ in range(_TRIES):
      # Orbax's threads may still write other arrays than that which failed. So the folder is looked at again.
      with suppress(OSError):
        if not folder.exists() or not (left := [*folder.iterdir()]):
          break
        for path in left:
          path.rmtree() if path.is_dir() else path.unlink()
      time.sleep(_SECONDS_BETWEEN_TRIES)
    raise


def _mean_of_last(run: Run, last: int, minutes: float | None, step: reading.Step) -> tuple[list[int], Params]:
  """The last steps and the mean of their parameters. Both are computed again if training deletes one meanwhile."""

  def look() -> tuple[list[int], Params] | RunError:
    steps = _enough(run, last, minutes, step)
    try:
      return steps, mean(_read(run, steps))
    except RunError as error:
      return error

  found = reading.retried(run.path, look, lambda found: isinstance(found, RunError))
  if isinstance(found, RunError):
    raise found
  return found


def _enough(run: Run, last: int, minutes: float | None, step: reading.Step) -> list[int]:
  """The steps to average, or an InputError that tells which there are."""
  times = files.finish_times(run.path)
  in_a_row = _saved_in_a_row(run.path, run.config, sorted(times, reverse=True))
  newest = reading.candidates(run.path, step)[:1]
  if newest and step != reading.LAST:
    in_a_row = [*newest, *(each for each in in_a_row if each < newest[0])]
  steps = chosen({each: times[each] for each in in_a_row if each in times}, last, minutes)
  if len(steps) < last:
    apart = "" if minutes is None else f" at least {minutes:g} minutes apart"
    until = f" up to step {newest[0]}" if newest and step != reading.LAST else ""
    raise InputError(
      f"--last is {last}, but {run.path} has fewer checkpoints{apart}{until} (steps: "
      f"{', '.join(map(str, steps)) or 'none'}): "
      f"{'ask for fewer' if steps else 'train on until there are some'}; config.train.save_every and "
      "config.train.keep say which a run keeps, and one that only a signal asked for does not count"
    )
  return steps


def _saved_in_a_row(workdir: epath.Path, config: Config, steps: Sequence[int]) -> Sequence[int]:
  """The newest steps that were planned and saved one after another, without an older one that is kept as the best.

  Args:
    workdir: the run folder.
    config: the run's.
    steps: all of them, newest first.
  """
  found: list[int] = []
  newer = math.inf
  last = config.train.steps  # planned, even if a signal asked for it before
  try:
    step = next((step for step in steps if step == last or files.read_previous(workdir, step).planned), None)
    while step is not None and step in steps and step < newer:  # unless records are damaged, each is older
      previous = files.read_previous(workdir, step)
      found += [step] if previous.planned or step == last else []
      step, newer = previous.step, step
  except FileNotFoundError:
    planned = [step for step in steps if files.is_planned(workdir, step)]
    return _probably_in_a_row(planned, config.train.keep, config.train.save_every)
  return found


def _probably_in_a_row(steps: Sequence[int], keep: int, every: int) -> Sequence[int]:
  """`_saved_in_a_row` for checkpoints of older versions, which do not record it: the best can only be the oldest."""
  if len(steps) > keep:
    return steps[:keep]
  *others, oldest = [newer - older for newer, older in itertools.pairwise(steps)] or [0]
  return steps[:-1] if 0 < every < oldest and oldest > max(others, default=0) else steps


def chosen(times: Mapping[int, datetime], last: int, minutes: float | None) -> list[int]:
  """The newest `last` steps or fewer, newest first, each at least `minutes` older than the one before it.

  Args:
    times: when the checkpoint of each step was finished.
    last: how many are wanted.
    minutes: None takes every step.
  """
  steps: list[int] = []
  for step in sorted(times, reverse=True):
    if minutes is None or not steps or (times[steps[-1]] - times[step]).total_seconds() >= 60 * minutes:
      steps.append(step)
  return steps[:last]


def _read(run: Run, steps: list[int]) -> Iterator[Params]:
  with Progress("checkpoint", total=len(steps)) as progress:
    for step in steps:
      try:
        yield restore.read_params(run.path, run.config, step)
      except Exception as error:  # damaged files can make orbax raise any
        if is_out_of_memory(error):
          raise
        raise RunError(f"the checkpoint of step {step} in {run.path} cannot be read: {one_line(error, 200)}") from error
      progress.update(1)


def mean(trees: Iterable[Params]) -> Params:
  """The mean of parameters, summed in float64 and rounded once to float32; one of `trees` is in memory at a time."""
  total, count = None, 0
  for tree in trees:
    if total is None:
      total = jax.tree.map(lambda x: np.array(x, np.float64), tree)
    else:
      jax.tree.map(lambda a, x: np.add(a, x, out=a), total, tree)
    count += 1
    del tree  # before the next is read
  return jax.tree.map(lambda a: np.float32(a / count), total)
