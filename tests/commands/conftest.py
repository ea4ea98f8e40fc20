"""A run folder, files to translate, and a command run in this process."""

import random
import sys

import pytest
from etils import epath

from tests.commands.lines import LINES, text
from transformer_jax import checkpoint, run_folder
from transformer_jax.__main__ import main
from transformer_jax.config import Config, DecodeConfig
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.decoding.translator import Translator
from transformer_jax.model.config import ModelConfig
from transformer_jax.training.step import init_state


@pytest.fixture(scope="package")
def workdir(tmp_path_factory):
  """A run folder with a tiny model of random weights."""
  folder = epath.Path(tmp_path_factory.mktemp("run"))
  config = Config(
    model=ModelConfig(vocab_size=277, num_layers=1, d_model=8, d_ff=13, num_heads=2),
    decode=DecodeConfig(beam_size=2, extra_length=3, max_source_length=16),
  )
  generator = random.Random(0)
  tokenizer = Tokenizer.learn(["".join(generator.choices("abcdefghij ", k=20)) for _ in range(30)], 277)
  run_folder.begin_run(folder, config, tokenizer, [])
  checkpoints = checkpoint.Checkpoints(folder, keep=1)
  checkpoints.save(init_state(config), 1.0)
  checkpoints.wait()
  checkpoints.close()
  return str(folder)


@pytest.fixture(scope="package")
def translator(workdir):
  return Translator.load(workdir)


@pytest.fixture(autouse=True)
def _one_translator(monkeypatch, request):
  """Restores and compiles once: only the folder is looked at again."""
  if "translator" in request.fixturenames:
    translator = request.getfixturevalue("translator")
    monkeypatch.setattr(Translator, "load", lambda workdir: translator)


@pytest.fixture
def run(monkeypatch, capfdbinary, tmp_path):
  """Runs a command on some input: (status, output, lines on stderr)."""

  def run(*argv, stdin=b""):
    (tmp_path / "stdin").write_bytes(stdin)
    with open(tmp_path / "stdin") as file:
      monkeypatch.setattr(sys, "stdin", file)
      return ended(argv)

  def ended(argv):
    status = main([str(argument) for argument in argv])
    out, err = capfdbinary.readouterr()
    return status, out.decode(), err.decode().split("\n")[:-1]

  return run


@pytest.fixture
def files(tmp_path):
  (tmp_path / "a.en").write_text(text(LINES))
  (tmp_path / "a.de").write_text(text(reversed(LINES)))
  return tmp_path
