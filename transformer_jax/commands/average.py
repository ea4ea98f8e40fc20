"""Averages the parameters of a run's last checkpoints, as in section 6.1 of the paper: the result is a new run folder.
`translate` and `evaluate` work with it as with any other; `train` cannot resume it. The parameters of the updates are
averaged, not their moving average (config.train.ema_decay). A checkpoint that only a stop saved does not count, unless
--step names it or the run ends with it. An older checkpoint that is kept only as the best does not count.
"""

import argparse

from transformer_jax.commands.workdir import add_workdir_arguments, open_run
from transformer_jax.runtime.errors import one_line
from transformer_jax.runtime.process import termination_raises


def add_arguments(parser: argparse.ArgumentParser) -> None:
  add_workdir_arguments(parser, "the newest checkpoint to take")
  parser.add_argument("--last", required=True, type=int, metavar="N", help="how many; the paper takes 5, for big 20")
  parser.add_argument(
    "--minutes", type=float, metavar="M", help="take only checkpoints at least M minutes apart, from the newest back"
  )
  parser.add_argument("--output", required=True, metavar="DIR", help="the run folder to write, new or empty")


def run(args: argparse.Namespace) -> None:
  import jax

  # Averaging needs no accelerator, which may be busy with the training of this very run.
  jax.config.update("jax_platforms", "cpu")
  from transformer_jax.runtime.progress import doing

  with termination_raises(), doing("averaging the checkpoints"):
    from transformer_jax.runs.averaging import average

    steps = average(open_run(args), args.output, args.last, args.minutes, step=args.step)
  print(one_line(f"{args.output} holds the mean of the checkpoints of steps {', '.join(map(str, steps))}"))
