"""Compiles the update of base and big for TPUs that are not here, and tells what the program needs.

    JAX_PLATFORMS=cpu python benchmarks/tpu_program.py [--topology v5e:2x4] [--configs base big] [--json FILE]

It needs `pip install -e '.[tpu]'` and no TPU: the compiler of TPUs runs on any CPU. The program is the one that
train.py runs on a TPU VM with these chips, with the state whole on each chip and the batch split. "memory" is what a
chip needs by the compiler's own figures, and "plan" what `transformer-jax plan` says.
"""

import argparse
import time
from typing import Any

import absent
import programs
import report

from transformer_jax.analysis import requirements
from transformer_jax.config import flags
from transformer_jax.runtime import devices


def main() -> None:
  parser = argparse.ArgumentParser(description="Programs for TPUs that are not here.", allow_abbrev=False)
  add = parser.add_argument
  add("--topology", default="v5e:2x4", metavar="NAME", help="the chips, as libtpu names them (default v5e:2x4)")
  add("--configs", nargs="+", default=["base", "big"], metavar="NAME", help="of configs/ (default base big)")
  report.add_arguments(parser, with_peers=False)
  args = parser.parse_args()
  chips = absent.tpus(args.topology)
  report.finish("tpu_program", [measure(name, chips) for name in args.configs], args.json)


def measure(name: str, chips: list[Any]) -> dict[str, Any]:
  """The row of a config."""
  config = flags.read_config(name, {})
  lowered, start = absent.lowered_update(config, chips, len(chips)), time.perf_counter()
  compiled = lowered.compile()
  seconds = time.perf_counter() - start
  with devices.traced_for("tpu"):
    planned = requirements.memory(config, len(chips)).total
  return {
    "config": name,
    "chips": f"{len(chips)} {chips[0].device_kind}",
    "type": config.model.dtype.value,
    "rows of a chip": requirements.rows_at_a_time(config, len(chips)) * config.train.accumulation,
    "memory, GB": absent.bytes_of(compiled) / 1e9,
    "plan, GB": planned / 1e9,
    "all-reduces": compiled.as_text().count("all-reduce-done") or compiled.as_text().count(" all-reduce("),
    "compiling, s": seconds,
  }


if __name__ == "__main__":
  programs.run(main)
