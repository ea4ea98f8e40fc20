"""Tells before anything runs what a config needs: parameters by part, memory of a device, floating-point operations,
time at a given rate, padding and epochs. --config and --config.KEY=VALUE are those of `train`. Only shapes are
computed, and the training text is packed unless --no-data is given; a text of TensorFlow Datasets is packed only with
--data.
"""

import argparse
import json

from transformer_jax.commands.experiment import add_config_arguments, config_of_new_run
from transformer_jax.commands.workdir import add_accept_edits
from transformer_jax.runtime.errors import InputError, require_option

_MOST_DEVICES, _MOST_RATE = 1 << 20, 1e30


def add_arguments(parser: argparse.ArgumentParser) -> None:
  add = parser.add_argument
  add_config_arguments(parser, "the first example")
  add("--devices", type=int, default=1, metavar="N", help="devices that share a batch (default 1)")
  add(
    "--rate",
    type=float,
    metavar="R",
    help="operations per second of one device, such as 60e12, or 50e9 for a CPU core; gives the time",
  )
  add(
    "--fit",
    metavar="MEMORY",
    help="tell how the paper's batch of 25,000 + 25,000 tokens fits in so much memory, such as 12GB",
  )
  add(
    "--platform",
    choices=["cpu", "gpu", "tpu"],
    help="the kind of the devices, on which their memory depends (default: that of the devices here)",
  )
  add(
    "--data",
    action=argparse.BooleanOptionalAction,
    help="pack the training text, config.data.train (default, except for TFDS)",
  )
  add("--json", action="store_true", help="print one JSON object")
  add_accept_edits(parser)


def run(args: argparse.Namespace) -> None:
  config = config_of_new_run(args)
  require_option("--devices", args.devices, 0 < args.devices <= _MOST_DEVICES, f"from 1 to {_MOST_DEVICES}")
  require_option("--rate", args.rate, args.rate is None or 1 <= args.rate <= _MOST_RATE, f"from 1 to {_MOST_RATE}")
  from transformer_jax.analysis import plan, plan_report
  from transformer_jax.config import Corpus
  from transformer_jax.runs.resume import require_new
  from transformer_jax.runtime.devices import require_devices, traced_for
  from transformer_jax.runtime.sizes import in_bytes

  require_new(config)
  if args.platform is None:
    require_devices()
  with traced_for(args.platform):
    found = plan.build_report(config, args.devices, args.rate, in_bytes(args.fit) if args.fit else None)
  if args.data if args.data is not None else config.data.corpus is not Corpus.TFDS:
    try:
      found["data"] = plan.data(config, accept_edits=args.accept_edits)
    except InputError as error:
      if args.data:
        raise
      found["data"] = {"not_measured": f"as {error}"}
  else:
    found["data"] = {"not_measured": "--data measures it"}
  print(json.dumps(found) if args.json else plan_report.text(found))
