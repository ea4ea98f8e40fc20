"""The flags and functions of commands that read a run folder."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from transformer_jax.runtime.errors import InputError

if TYPE_CHECKING:  # orbax takes seconds to import
  from transformer_jax.runs.run import Run
  from transformer_jax.runs.steps import Step


def add_workdir_arguments(
  parser: argparse.ArgumentParser, step: str = "the checkpoint to use", *, ensemble: bool = False, required: bool = True
) -> None:
  """Adds --workdir, --step and --accept-edits; `step` describes the flag --step, `ensemble`: several --workdir."""
  parser.add_argument(
    "--workdir",
    required=required,
    action="append" if ensemble else "store",
    metavar="DIR",
    help="the run folder that `train` made" + ("; several are an ensemble" if ensemble else ""),
  )
  add_step(parser, f"{step}: that of step N, the last (default), or the best by validation")
  add_accept_edits(parser)


def add_step(parser: argparse.ArgumentParser, description: str) -> None:
  """Adds --step."""
  parser.add_argument("--step", type=step_of, default="last", metavar="N|last|best", help=description)


def add_pairs(parser: argparse.ArgumentParser) -> None:
  """Adds --data, the sentence pairs that a command looks at."""
  parser.add_argument(
    "--data",
    required=True,
    metavar="PREFIX",
    help="the sentence pairs, two text files, as config.data.train names them",
  )


def add_accept_edits(parser: argparse.ArgumentParser) -> None:
  """Adds --accept-edits."""
  parser.add_argument(
    "--accept-edits",
    action="store_true",
    help="take config.json, provenance.json and the vocabulary as they are, though they are not as they were written",
  )


def step_of(text: str) -> "Step":
  """The value of --step."""
  if text == "last" or text == "best":
    return text
  if not (text.isascii() and text.isdigit() and len(text) < 20):  # Python reads no number of thousands of digits
    raise argparse.ArgumentTypeError(f"{text!r} must be the number of a step, last or best")
  return int(text)


def open_run(args: argparse.Namespace) -> "Run":
  """The run in --workdir."""
  from transformer_jax import runs

  return runs.open(args.workdir, accept_edits=args.accept_edits)


def run_to_restore(workdir: str, args: argparse.Namespace, command: str) -> "Run":
  """The run in a folder, whose model must be one for this command; prints which checkpoint --step restores."""
  [run] = runs_to_restore([workdir], args, command)
  return run


def require_one_direction(run: "Run", why: str) -> None:
  """Raises InputError if a run translates into several languages; `why` says what is then missing."""
  if run.config.data.tags or len(run.tokenizer.source.codes) > 1:
    raise InputError(f"the run in {run.path} translates into several languages, so {why}: use a run of one direction")


def runs_to_restore(workdirs: Sequence[str], args: argparse.Namespace, command: str) -> "list[Run]":
  """The run in each folder, as `run_to_restore` opens one."""
  from transformer_jax.runtime.progress import doing, say

  with doing("loading JAX"):
    from transformer_jax import registry, runs
    from transformer_jax.runtime import devices
    from transformer_jax.runtime.compilation_cache import use_compilation_cache

    devices.require_devices()
    use_compilation_cache()
  opened = [runs.open(workdir, accept_edits=args.accept_edits) for workdir in workdirs]
  for run in opened:
    which = {"last": ", the last", "best": f", the best by {run.config.train.best_by}"}.get(args.step, "")
    registry.require_command(run.config.model, command, run.path)
    there = run.checkpoints
    step = {"last": there.last, "best": there.best}.get(args.step, args.step)
    if step in there.steps:  # otherwise the error of restoring names the steps
      run.said = step  # while the run trains, another may be the last when it is read
      say(f"restoring the checkpoint of step {step}{which}" + (f", of {run.path}" if len(opened) > 1 else ""))
  return opened
