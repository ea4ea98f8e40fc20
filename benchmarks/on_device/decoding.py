"""Sentences per second, beside the libraries that are installed here: `decoding_speed.py` without environments.

The first model is `models/en-de`. The second has the sizes of base and random parameters: its outputs have no end, so
all sides decode as many tokens as they may, and their texts tell nothing.
"""

import argparse
import dataclasses
import functools
import importlib.util
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import decoding_speed
import part
import sizes
from etils import epath
from sentences import sentences

from transformer_jax import runs
from transformer_jax.config import LengthPenalty
from transformer_jax.model.config import Dtype
from transformer_jax.runs import params_file, run_folder
from transformer_jax.runtime import devices
from transformer_jax.training.step import init_params
from transformer_jax.training.task import task_of

HERE = Path(__file__).resolve().parents[2]
MODEL = HERE / "models" / "en-de"


def peers() -> list[str]:
  """The libraries that are installed here, in the type that is usual on the device."""
  engine = "CTranslate2" if devices.on_cpu() else "CTranslate2 float16"
  packages = {"transformers": ("transformers", "torch"), engine: ("ctranslate2",)}
  return [name for name, needed in packages.items() if all(map(importlib.util.find_spec, needed))]


def measure(workdir: str, sides: list[str], count: int, singly: int, batches: list[int]) -> part.Rows:
  """The rows of a model: ours and those of `sides`."""
  programs = {decoding_speed.OURS: ("decoders/ours.py", sys.executable, HERE)}
  programs |= {name: (decoding_speed.PEERS[name].program, sys.executable, HERE) for name in sides}
  with tempfile.NamedTemporaryFile("w", suffix=".en") as file:
    file.write("".join(f"{line}\n" for line in sentences(count)))
    file.flush()
    args = argparse.Namespace(
      data=file.name,
      sides=sides,
      sentences=count,
      singly=singly,
      sample=min(count, 200),
      batches=batches,
      rounds=2,
      device="cpu" if devices.on_cpu() else "cuda",
    )
    return decoding_speed.measure_run(workdir, programs, args)


def measure_random(tiny: bool, *size: Any) -> part.Rows:
  """The rows of a model with the sizes of base, bfloat16 and random parameters."""
  with tempfile.TemporaryDirectory() as folder:
    write_random(Path(folder), tiny)
    return measure(folder, *size)


def write_random(folder: Path, tiny: bool) -> None:
  """Writes a run folder with the vocabulary of `models/en-de` and random parameters."""
  run = runs.open(MODEL)
  sized = sizes.TINY if tiny else sizes.BASE
  model = dataclasses.replace(sized, vocab_size=run.config.model.vocab_size, dtype=Dtype.BFLOAT16)
  decode = dataclasses.replace(run.config.decode, penalty=LengthPenalty.FAIRSEQ, extra_length=10)
  config = dataclasses.replace(run.config, model=model, decode=decode)
  params_file.write(folder, init_params(config, task_of(model)), 0, Dtype.FLOAT32)
  history = [{"time": datetime.now(UTC).isoformat(timespec="seconds"), "random": True}]
  run_folder.begin_run(epath.Path(folder), config, run.tokenizer, history)


def cases(tiny: bool) -> dict[str, part.Case]:
  size = (6, 2, [4]) if tiny else (1000, 20, [64, 256])
  found: dict[str, part.Case] = {}
  for name in peers() or [""]:  # each in a case of its own, as one may fail
    sides = [name] if name else []
    found[f"en-de beside {name}"] = functools.partial(measure, str(MODEL), sides, *size)
    found[f"random beside {name}"] = functools.partial(measure_random, tiny, sides, *size)
  return found


if __name__ == "__main__":
  part.run(cases)
