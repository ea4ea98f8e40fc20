"""Sentences per second, beside the libraries that are installed here: `decoding_speed.py` without environments.

The first model is `models/en-de`. The second has the sizes of base and random parameters. Its outputs seldom end by
themselves, so compare tokens per second: a peer's limit is that of the longest source of a batch, ours that of each
source. Ours computes in float32 beside transformers, which does so, both with TF32 matmuls on a GPU, and in bfloat16
beside CTranslate2 in float16.
"""

import argparse
import dataclasses
import functools
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import decoding_speed
import part
import sizes
from decoding_speed import Setting
from etils import epath
from sentences import sentences
from side import Side

from transformer_jax import runs
from transformer_jax.config import LengthPenalty
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.decoding.translator import Translator
from transformer_jax.model.config import Dtype
from transformer_jax.runs import params_file, run_folder
from transformer_jax.runtime import devices
from transformer_jax.training.initialization import init_params
from transformer_jax.training.task import task_of

HERE = Path(__file__).resolve().parents[2]
MODEL = HERE / "models" / "en-de"
ROUNDS = 3
BEAMS = (4, 1)
# Whether tiny -> the number of sentences, and the batch sizes of a peer, of which the fastest is measured.
SIZE = {True: (6, (4,)), False: (1000, (250, 1000))}


def peers() -> list[str]:
  """The libraries that are installed here, in the type that is usual on the device."""
  engine = "CTranslate2" if devices.on_cpu() else "CTranslate2 float16"
  packages = {"transformers": ("transformers", "torch"), engine: ("ctranslate2",)}
  return [name for name, needed in packages.items() if all(map(importlib.util.find_spec, needed))]


def measure(workdir: str, sides: list[str], count: int, batches: tuple[int, ...]) -> part.Rows:
  """The rows of a model, ours and those of `sides`: all sentences in one call, at beam 4 and greedy."""
  with tempfile.TemporaryDirectory() as scratch:
    folder, file = Path(scratch), Path(scratch) / "sentences.en"
    file.write_text("".join(f"{line}\n" for line in sentences(count)))
    args = argparse.Namespace(
      data=str(file), sides=sides, sentences=count, device="cpu" if devices.on_cpu() else "cuda"
    )
    tokenizer, job = decoding_speed.prepare(workdir, args, folder)
    programs = {decoding_speed.OURS: "decoders/ours.py"} | {name: decoding_speed.PEERS[name].program for name in sides}
    # All sides have the packages that `peers` found.
    environment = {"JAX_PLATFORMS": args.device, "PYTHONPATH": os.pathsep.join(sys.path)}
    running = [Side(name, sys.executable, program, folder, [name], **environment) for name, program in programs.items()]
    try:
      return [row for beam in BEAMS for row in measure_beam(running, beam, batches, tokenizer, len(job["sources"]))]
    finally:
      for side in running:
        side.close()


def measure_beam(
  running: list[Side], beam: int, batches: tuple[int, ...], tokenizer: Tokenizer, count: int
) -> part.Rows:
  """The rows of a beam size; ours chooses the batch size itself."""
  everything = list(range(count))
  ours, theirs = [Setting(beam, 0, {"patience": 1})], [Setting(beam, size, {}) for size in batches]
  entrants = [
    decoding_speed.fastest(side.name, side, settings, everything)
    for side, settings in zip(running, [ours, *([theirs] * len(running[1:]))], strict=True)
  ]
  return [{"beam": beam, **row} for row in decoding_speed.measure(entrants, everything, tokenizer, ROUNDS)]


def measure_random(tiny: bool, dtype: Dtype, *size: Any) -> part.Rows:
  """The rows of a model with the sizes of base and random parameters."""
  with tempfile.TemporaryDirectory() as folder:
    write_random(Path(folder), tiny, dtype)
    return measure(folder, *size)


def write_random(folder: Path, tiny: bool, dtype: Dtype) -> None:
  """Writes a run folder with the vocabulary of `models/en-de` and random parameters."""
  run = runs.open(MODEL)
  sized = sizes.TINY if tiny else sizes.BASE
  model = dataclasses.replace(sized, vocab_size=run.config.model.vocab_size, dtype=dtype)
  decode = dataclasses.replace(run.config.decode, penalty=LengthPenalty.FAIRSEQ, extra_length=10)
  config = dataclasses.replace(run.config, model=model, decode=decode)
  params_file.write(folder, init_params(config, task_of(model)), 0, Dtype.FLOAT32)
  run_folder.begin_run(epath.Path(folder), config, run.tokenizer, [run_folder.entry(random=True)])


def programs(tiny: bool) -> dict[str, Callable[[], object]]:
  """Functions that use each of our models once, which compiles its programs."""

  def translate(folder: str) -> None:
    translator = Translator.load(folder)
    for beam in BEAMS:
      translator.translate(sentences(SIZE[tiny][0]), beam_size=beam, patience=1)

  def translate_random(dtype: Dtype) -> None:
    with tempfile.TemporaryDirectory() as folder:
      write_random(Path(folder), tiny, dtype)
      translate(folder)

  found = {"en-de": lambda: translate(str(MODEL))}
  dtypes = {dtype_beside(name) for name in peers() or [""]}
  return found | {f"random, {dtype.value}": functools.partial(translate_random, dtype) for dtype in dtypes}


def dtype_beside(peer: str) -> Dtype:
  """The type that ours computes in, beside a peer."""
  return Dtype.BFLOAT16 if peer.endswith("float16") else Dtype.FLOAT32


def cases(tiny: bool) -> dict[str, part.Case]:
  size = SIZE[tiny]
  found: dict[str, part.Case] = {}
  for name in peers() or [""]:  # each in a case of its own, as one may fail
    sides = [name] if name else []
    found[f"en-de beside {name}"] = functools.partial(measure, str(MODEL), sides, *size)
    dtype = dtype_beside(name)
    found[f"random, {dtype.value}, beside {name}"] = functools.partial(measure_random, tiny, dtype, sides, *size)
  return found


if __name__ == "__main__":
  part.run(cases)
