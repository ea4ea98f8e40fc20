"""A run folder for commands to read, a command that runs in this process, and the environment of one of its own."""

import os
import random
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from etils import epath

from tests.model.example import random_state
from transformer_jax import runs
from transformer_jax.__main__ import main
from transformer_jax.config import Config, DecodeConfig
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.decoding.translator import Translator
from transformer_jax.model.config import ModelConfig
from transformer_jax.runs import checkpoint, run_folder
from transformer_jax.runs.checkpoint_files import LOSS
from transformer_jax.training.task import task_of

RESTORING = "restoring the checkpoint of step "


def make_run(folder: Path) -> Path:
  """A run folder with a tiny model of random weights, as after no update."""
  config = Config(
    model=ModelConfig(vocab_size=277, num_layers=1, d_model=8, d_ff=13, num_heads=2),
    decode=DecodeConfig(beam_size=2, extra_length=3, max_source_length=16),
  )
  generator = random.Random(0)
  tokenizer = SentencePieceTokenizer.learn(["".join(generator.choices("abcdefghij ", k=20)) for _ in range(30)], 277)
  save_run(folder, config, tokenizer, steps=[0])
  return folder


@pytest.fixture(scope="package")
def workdir(tmp_path_factory):
  """A run folder with a tiny model of random weights."""
  return str(make_run(tmp_path_factory.mktemp("run")))


@pytest.fixture(scope="package")
def translator(workdir):
  return Translator.load(workdir)


@pytest.fixture(autouse=True)
def one_translator(monkeypatch, request):
  """Lets a command restore and compile nothing again in a test with `translator`: only the folder is looked at."""
  if "translator" in request.fixturenames:
    translator = request.getfixturevalue("translator")
    monkeypatch.setattr(Translator, "load", lambda run, *, step: translator)


def save_run(folder: Path, config: Config, tokenizer: Tokenizer, steps: Iterable[int]) -> None:
  """Writes a run folder with checkpoints of these steps, of random weights."""
  run_folder.make_folder(epath.Path(folder), "--workdir")
  run_folder.begin_run(epath.Path(folder), config, tokenizer, [])
  checkpoints = checkpoint.Checkpoints(epath.Path(folder), config.train.keep)
  for step in steps:
    checkpoints.save(random_state(config, task_of(config.model), seed=step).replace(step=np.int32(step)), {LOSS: 1.0})
    checkpoints.wait()
  checkpoints.close()


def command_line(
  monkeypatch: Any, capture: Any, folder: Path, *, every_line: bool = False
) -> Callable[..., tuple[int, str, list[str]]]:
  """A function that runs a command on some input: (status, output, lines on stderr).

  Without `every_line` the one that says which checkpoint is restored is left out, as each command has it.
  """

  def run(*argv: object, stdin: bytes = b"") -> tuple[int, str, list[str]]:
    (folder / "stdin").write_bytes(stdin)
    with open(folder / "stdin") as file:
      monkeypatch.setattr(sys, "stdin", file)
      status = main([str(argument) for argument in argv])
    out, err = capture.readouterr()
    lines = err.decode().split("\n")[:-1]
    return status, out.decode(), [line for line in lines if every_line or not line.startswith(RESTORING)]

  return run


def plain_environment(cache: Path) -> dict[str, str]:
  """The environment of a process as users have it: one device, and what it compiles only in the folder `cache`."""
  own = {"TRANSFORMER_JAX_CACHE": str(cache), "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "", "JAX_COMPILATION_CACHE_DIR": ""}
  return {key: value for key, value in {**os.environ, **own}.items() if value}


def read_with_tags(monkeypatch):
  """Opens every run as one of a model of several languages."""
  opened = runs.open

  def with_tags(*args, **options):
    found = opened(*args, **options)
    found.config.data.tags = True
    return found

  monkeypatch.setattr(runs, "open", with_tags)
