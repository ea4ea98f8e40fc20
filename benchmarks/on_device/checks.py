"""Whether the device computes what it should: attention, a resumed run, and translations."""

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import part
from sentences import sentences

from transformer_jax import runs
from transformer_jax.model.attention import fused_attention, scaled_dot_product_attention
from transformer_jax.runtime import devices

HERE = Path(__file__).resolve().parents[2]
MODEL = HERE / "models" / "en-de"
# XLA's scatter on GPUs adds in any order, and its autotuning may choose another matmul in each process.
DETERMINISTIC = "--xla_gpu_deterministic_ops=true"
TRANSLATE = f"""
import json, sys
from transformer_jax.decoding.translator import Translator
found = Translator.load({str(MODEL)!r}).translate(json.load(sys.stdin), beam_size=4, return_scores=True)
print(json.dumps([(one.text, one.score) for one in found]))
"""


def attention(length: int) -> part.Rows:
  """The largest difference from eq. 1 in float32, beside that of eq. 1 in bfloat16."""
  generator = np.random.default_rng(0)
  query, key, value, into = generator.standard_normal((4, 5, length, 3, 64), np.float32)
  mask = generator.random((5, length, length)) < 0.6
  mask[:, 4] = False

  def results(function: Callable, dtype: Any) -> list[np.ndarray]:
    def loss(*qkv: jax.Array) -> tuple[jax.Array, jax.Array]:
      result = jax.vmap(function)(*qkv, mask)
      return jnp.sum((into * result).astype(jnp.float32)), result

    gradients = jax.jit(jax.value_and_grad(loss, (0, 1, 2), has_aux=True))
    with jax.default_matmul_precision("highest"):
      (_, result), found = gradients(*(x.astype(dtype) for x in (query, key, value)))
    return [np.asarray(x, np.float32) for x in (result, *found)]

  exact = results(scaled_dot_product_attention, jnp.float32)
  implementation = "cudnn" if devices.has_cudnn() else "xla"
  sides = {
    f"fused, {implementation}": functools.partial(fused_attention, implementation=implementation),
    "plain": scaled_dot_product_attention,
  }
  names = ("output", "of Q", "of K", "of V")
  return [
    {"side": side, "dtype": "bfloat16"}
    | {name: np.abs(x - y).max() / np.abs(y).max() for name, x, y in zip(names, found, exact, strict=True)}
    for side, found in ((side, results(function, jnp.bfloat16)) for side, function in sides.items())
  ]


def resume(flags: str, steps: int) -> part.Rows:
  """A run of `steps` updates beside one that ends after half of them and is resumed."""
  with tempfile.TemporaryDirectory() as scratch:
    whole, halves = Path(scratch) / "whole", Path(scratch) / "halves"
    for folder, number in ((whole, steps), (halves, steps // 2), (halves, steps)):
      train(folder, number, flags, scratch)
    one, other = (runs.open(folder).model().params for folder in (whole, halves))
  pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(*map(jax.tree.leaves, (one, other)), strict=True)]
  return [
    {
      "updates": steps,
      "equal to the last bit": all(a.tobytes() == b.tobytes() for a, b in pairs),
      "largest difference": max(float(np.abs(a - b).max()) for a, b in pairs),
    }
  ]


def train(workdir: Path, steps: int, flags: str, scratch: str) -> None:
  """Runs the first example for `steps` updates."""
  options = [
    *("--config.model.vocab_size=300", f"--config.data.cache_dir={scratch}", "--config.train.warmup_steps=10"),
    *(f"--config.train.steps={steps}", "--config.train.save_every=5", "--config.evaluate.sentences=8"),
  ]
  environment = {**os.environ, "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()}
  command = [sys.executable, "-m", "transformer_jax", "train", "--config=configs/numbers.py", f"--workdir={workdir}"]
  subprocess.run([*command, *options], check=True, cwd=HERE, env=environment, stdout=subprocess.DEVNULL)


def decoding(count: int, precision: str) -> part.Rows:
  """Translations of this device beside those of the CPU."""
  lines = sentences(count)

  def translate(**environment: str) -> list[tuple[str, float]]:
    found = subprocess.run(
      [sys.executable, "-c", TRANSLATE],
      input=json.dumps(lines),
      check=True,
      stdout=subprocess.PIPE,
      text=True,
      env={**os.environ, **environment},
    )
    return [(text, score) for text, score in json.loads(found.stdout.splitlines()[-1])]

  here, cpu = translate(JAX_DEFAULT_MATMUL_PRECISION=precision), translate(JAX_PLATFORMS="cpu")
  differences = [abs(a[1] - b[1]) for a, b in zip(here, cpu, strict=True) if a[0] == b[0]]
  return [
    {
      "precision of matmuls": precision,
      "sentences": len(lines),
      "equal translations": len(differences) / len(lines),
      "largest difference of their scores": max(differences, default=float("nan")),
    }
  ]


def cases(tiny: bool) -> dict[str, part.Case]:
  steps, count = (4, 3) if tiny else (20, 200)
  return {
    "attention beside eq. 1": functools.partial(attention, 18 if tiny else 128),
    "decoding beside the CPU's": functools.partial(decoding, count, "highest"),
    "a resumed run": functools.partial(resume, "", steps),
    **({} if tiny else {"a resumed run, deterministic": functools.partial(resume, DETERMINISTIC, steps)}),
    **({} if tiny else {"decoding beside the CPU's, default": functools.partial(decoding, count, "default")}),
  }


if __name__ == "__main__":
  part.run(cases)
