"""Everything that needs an accelerator, in one command of at most --minutes.

    python benchmarks/accelerator.py --json FILE [--minutes 9] [--parts training decoding] [--tiny]

It needs nothing but this checkout and the installed packages: no text, no download. It is made for one H100 or H200.

| part | what it measures |
|---|---|
| roofline | the rates of matmuls and of memory, and the least time of each part of a step of base and big |
| compiling | nothing: it compiles the programs of the other parts, several at a time, into a cache on disk |
| checks | cuDNN's attention beside eq. 1, a resumed run beside an uninterrupted one, decoding beside that of the CPU |
| training | model FLOPs utilisation of base and big in bfloat16, by attention, row length and batch |
| operations | the time of each part of the model in one step, and of the longest operations |
| decoding | sentences per second at beam 4 and greedy, beside transformers and CTranslate2 where they are installed |
| inputs | the time to prepare a batch, and a step with its batch prepared meanwhile |

Each part is a process with its own time limit. `compiling` and `checks` run first, side by side, as neither is timed. A
part consists of cases. Each case is written to the folder FILE.cases as soon as it is done, and the JSON file after
each part. The same command resumes: a case that is done on the same kind of device is not measured again. A case that
fails is reported, and the next one goes on. --tiny makes all sizes tiny, to try the program on a CPU.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import report

from transformer_jax.runtime.files import write_atomically

HERE = Path(__file__).resolve().parent
# The seconds that a part may take; time that it leaves goes to the parts behind it.
LIMITS = {
  "roofline": 60,
  "compiling": 240,
  "checks": 240,
  "training": 120,
  "operations": 60,
  "decoding": 180,
  "inputs": 60,
}
TOGETHER = ("compiling", "checks")
SLOWER = 4  # as --tiny is for CPUs
LEAST = 20  # seconds without which no part is started
# Several processes share the device's memory.
SHARED = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
ENVIRONMENT = {
  "compiling": SHARED,
  "checks": SHARED,
  # With command buffers the profiler sees one kernel for many operations.
  "operations": {"XLA_FLAGS": "--xla_gpu_enable_command_buffer="},
  "decoding": SHARED,
}


def main() -> None:
  args = parse()
  deadline = time.monotonic() + 60 * args.minutes
  folder = Path(f"{args.json}.{'tiny' if args.tiny else 'cases'}")
  folder.mkdir(parents=True, exist_ok=True)
  endings = {}
  for parts in groups(args.parts):
    with ThreadPoolExecutor(len(parts)) as executor:
      found = executor.map(lambda part: run_in_time(part, folder, deadline, args.tiny), parts)
      endings |= dict(zip(parts, found, strict=True))
    report.progress(", ".join(f"{part}: {endings[part]}" for part in parts))
    write(Path(args.json), folder, endings)
  for part in args.parts:
    print(f"\n## {part}: {endings[part]}\n\n{report.table(rows_of(folder, part))}")


def parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description="All that needs an accelerator.", allow_abbrev=False)
  add = parser.add_argument
  add("--json", required=True, metavar="FILE", help="the result; the same file again resumes")
  add("--minutes", type=float, default=9, metavar="M", help="in all (default 9)")
  add("--parts", nargs="+", default=list(LIMITS), choices=LIMITS, metavar="PART", help="(default: all)")
  add("--tiny", action="store_true", help="tiny sizes, to try the program")
  return parser.parse_args()


def groups(parts: Sequence[str]) -> list[list[str]]:
  """The parts that run side by side, then the others one after the other."""
  together = [part for part in TOGETHER if part in parts]
  return [*([together] if together else []), *([part] for part in parts if part not in TOGETHER)]


def run_in_time(part: str, folder: Path, deadline: float, tiny: bool) -> str:
  """Runs a part if there is time for it, and says how it ended."""
  seconds = min(LIMITS[part] * (SLOWER if tiny else 1), deadline - time.monotonic())
  return run_part(part, folder, seconds, tiny) if seconds >= LEAST else "not started: no time is left"


def run_part(part: str, folder: Path, seconds: float, tiny: bool) -> str:
  """Runs a part and says how it ended."""
  options = ["--tiny"] if tiny else []
  environment = {
    "CUDA_VISIBLE_DEVICES": "0",  # rates are of one device
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent), *sys.path]),
    "JAX_COMPILATION_CACHE_DIR": str((folder / "compiled").resolve()),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    **ENVIRONMENT.get(part, {}),
  }
  with (folder / f"{part}.log").open("a") as log:
    process = subprocess.Popen(
      [sys.executable, str(HERE / "on_device" / f"{part}.py"), str(folder / f"{part}.jsonl"), *options],
      stdout=log,
      stderr=log,
      env=environment,
      start_new_session=True,
    )
    try:
      status = process.wait(seconds)
    except subprocess.TimeoutExpired:
      return f"stopped after {seconds:.0f} s"
    finally:
      kill(process)
  return "done" if status == 0 else f"ended with status {status}, see {part}.log"


def kill(process: subprocess.Popen) -> None:
  """Ends the process and those that it started."""
  with contextlib.suppress(ProcessLookupError):
    os.killpg(process.pid, signal.SIGKILL)
  process.wait()


def rows_of(folder: Path, part: str) -> list[dict[str, Any]]:
  """The rows of the part's cases on the device and with the versions of the last one; of a repeated case the last."""
  file = folder / f"{part}.jsonl"
  found = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
  here = {name: found[-1][name] for name in ("device", "versions")} if found else {}
  cases = {case["case"]: case for case in found if {**case, **here} == case}
  return [{"case": name, "device": case["device"], **row} for name, case in cases.items() for row in case["rows"]]


def write(file: Path, folder: Path, endings: dict[str, str]) -> None:
  """Writes the JSON file, in place of an older one."""
  parts = {part: {"ending": endings.get(part), "rows": rows_of(folder, part)} for part in LIMITS}
  found = {"program": "accelerator", **report.context(), "parts": parts}
  write_atomically(file, (json.dumps(found, indent=2) + "\n").encode())


if __name__ == "__main__":
  main()
