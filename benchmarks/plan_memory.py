"""The memory of a training step: what `transformer-jax plan` says, beside what the compiler allocates.

    python benchmarks/plan_memory.py [configs/base.py configs/table3.py:C-N2 ...] [--devices 8] [--platform gpu]
      [--KEY=VALUE ...] [--json FILE]

The step of one of --devices is compiled and not run. On a CPU that takes a minute for base and several for big. XLA's
number is that of `memory_analysis`: the arguments, which the result replaces, and the temporary arrays. --platform
compiles for H200s or v5e chips, which need not be here (`absent.py`). Other flags are keys of every config, as in
--model.remat=layer.
"""

import argparse
from typing import Any

import absent
import jax
import programs
import report

from transformer_jax.analysis import requirements
from transformer_jax.config import Config
from transformer_jax.config.flags import read_config, read_keys
from transformer_jax.runtime import devices

# The rows of Table 3 differ from base in heads, d_k, layers, width and dropout.
CONFIGS = (
  "configs/base.py",
  "configs/big.py",
  *(f"configs/table3.py:{row}" for row in ("A-h1", "B-dk16", "C-N2", "C-d256", "D-drop0.0")),
)


def main() -> None:
  args, keys = parse()
  chip = chip_of(args.platform)
  rows = []
  for name in args.configs:
    config = read_config(name, read_keys([f"--config.{key}" for key in keys]))
    with devices.traced_for(args.platform):
      rows.append({"config": " ".join([name, *keys]), **compare(config, chip, args.devices)})
    report.progress(f"{name}: {rows[-1]['plan / XLA']:.3f}")
  report.finish("plan_memory", rows, args.json)


def parse() -> tuple[argparse.Namespace, list[str]]:
  parser = argparse.ArgumentParser(description="Planned and allocated memory.", allow_abbrev=False)
  add = parser.add_argument
  add("configs", nargs="*", default=CONFIGS, metavar="CONFIG", help="files (default: base, big, rows of Table 3)")
  add("--devices", type=int, default=8, metavar="N", help="devices that share a batch (default 8)")
  add("--platform", choices=["gpu", "tpu"], help="of devices that need not be here (default: those here)")
  report.add_arguments(parser, with_peers=False)
  args, rest = parser.parse_known_args()
  return args, programs.overrides(parser, rest)


def chip_of(platform: str | None) -> Any:
  """A device of the platform, or one that is here."""
  if platform is None:
    return jax.local_devices()[0]
  return absent.gpu() if platform == "gpu" else absent.tpus("v5e:2x2")[0]


def compare(config: Config, chip: Any, count: int) -> dict[str, Any]:
  """The columns of a config, on one of `count` devices."""
  planned = requirements.memory(config, count).total
  allocated = absent.bytes_of(absent.lowered_update(config, [chip], count).compile())
  return {
    "rows of a device": f"{requirements.rows_at_a_time(config, count)} of {config.data.row_length}",
    "plan, GB": planned / 1e9,
    "XLA, GB": allocated / 1e9,
    "plan / XLA": planned / allocated,
  }


if __name__ == "__main__":
  programs.run(main)
