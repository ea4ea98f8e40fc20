"""The programs of `export --to stablehlo`, run by a process that has no transformer_jax, against `translate`."""

import dataclasses
import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from etils import epath
from jax import export as jax_export

from tests.parity import exported
from tests.recurrent.example import CONFIGS
from transformer_jax import runs
from transformer_jax.config import Config
from transformer_jax.decoding.line_breaks import without_line_breaks
from transformer_jax.decoding.translator import Translator
from transformer_jax.interchange import stablehlo
from transformer_jax.interchange.export import export
from transformer_jax.language.config import GPTConfig
from transformer_jax.model.config import Dtype, Start
from transformer_jax.model.transformer import Transformer
from transformer_jax.runs import params_file, run_folder
from transformer_jax.runs.run import Model
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.initialization import init_params

# Runs the program of the page on the lines of standard input, with each of the files.
RUNNER = """\
import json, pathlib, sys, types
sys.modules["transformer_jax"] = None
code = pathlib.Path("README.md").read_text().split("```python\\n")[1].split("```")[0].split("\\nfor text,")[0]
lines, results = json.load(sys.stdin), []
for program in sys.argv[1:]:
  names = {}
  exec(code.replace("beam.jax", program), names)
  name = next(name for name in ("of_target", "pieces") if name in names)
  pieces, names[name] = names[name], types.SimpleNamespace(encode=names[name].encode, decode=list)
  results.append([[tokens, pieces.decode(tokens), score] for tokens, score in names["translate"](lines)])
print(json.dumps(results))
"""


def random_run(config, folder):
  """A run folder of random weights."""
  generator = np.random.default_rng(0)
  shapes = jax.eval_shape(lambda: init_params(config, TASK))
  params = jax.tree.map(lambda x: np.float32(0.4 * generator.standard_normal(x.shape)), shapes)
  folder.mkdir()
  params_file.write(folder, params, 5, Dtype.FLOAT32)
  run_folder.begin_run(epath.Path(folder), config, exported.tokenizer(*config.model.vocab_sizes), [])
  return folder


def transformer_run(folder):
  """A run whose search has the options that some imported models need."""
  config = exported.config(start=Start.PAD)
  config = dataclasses.replace(config, decode=dataclasses.replace(config.decode, renormalize=True))
  return exported.export_of(config, exported.params_of(config), folder, "stablehlo"), folder / "run"


def recurrent_run(name, folder):
  config = exported.config()
  sizes: dict[str, Any] = {"vocab_size": exported.VOCAB}
  if len(CONFIGS[name].vocab_sizes) > 1:
    sizes["source_vocab_size"] = exported.SEPARATE["source_vocab_size"]
  config = dataclasses.replace(config, model=dataclasses.replace(CONFIGS[name], **sizes))
  run = random_run(config, folder / "run")
  export(run, folder / "model", "stablehlo", parameters="beside")
  return folder / "model", run


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("rnn-context", "gru", "reversed", "luong-concat")]


@pytest.mark.long
@pytest.mark.parametrize("name", ["transformer", "bahdanau", *SLOW])
def test_translations_and_scores_are_those_of_translate(tmp_path, name):
  folder, run = transformer_run(tmp_path) if name == "transformer" else recurrent_run(name, tmp_path)
  programs = {"beam.jax": 3} | ({"greedy.jax": 1} if name == "transformer" else {})
  command = [sys.executable, "-W", "error", "-c", RUNNER, *programs]
  given = json.dumps(exported.lines())
  done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, cwd=folder)
  assert (done.returncode, done.stderr) == (0, "")
  translator = Translator.load(run)
  for (program, beam_size), found in zip(programs.items(), json.loads(done.stdout), strict=True):
    expected = translator.translate(exported.lines(), beam_size=beam_size, return_scores=True)
    for (tokens, text, score), translation in zip(found, expected, strict=True):
      assert without_line_breaks(runs.open(run).tokenizer.decode(tokens)) == translation.text
      assert len(tokens) + 1 == translation.tokens
      np.testing.assert_allclose(score, translation.score, rtol=2e-5)
      if name == "transformer":  # the others write bytes that are no characters
        assert text == translation.text
    written = jax_export.deserialize(bytearray((folder / program).read_bytes()))
    assert written.platforms == ("cpu", "cuda", "tpu")
    assert [str(size) for size in written.in_avals[-1].shape] == ["sentences", "length"]


def test_only_models_that_translate():
  model = GPTConfig(vocab_size=exported.VOCAB, num_layers=1, d_model=8, d_ff=13, num_heads=2)
  with pytest.raises(InputError, match="the format stablehlo has no gpt model: choose --to safetensors"):
    stablehlo.require(Config(model=model))


def test_a_model_that_needs_to_know_the_length_is_refused(monkeypatch):
  """A model of another package may do so."""
  monkeypatch.setattr(Transformer, "encode", lambda self, source, *rest: np.zeros(len(source)))
  with pytest.raises(InputError, match=r"^the format stablehlo cannot express the transformer model: .*; choose --to"):
    stablehlo._program(exported.config(), 1, {}, inside=False)


@pytest.mark.long
def test_parameters_that_fill_a_file_are_beside(tmp_path, monkeypatch):
  run = random_run(exported.config(), tmp_path / "run")
  monkeypatch.setattr(stablehlo, "_MOST_BYTES", 1000)
  with pytest.raises(InputError, match="parameters are too many for a program: choose --parameters beside"):
    export(run, tmp_path / "model", "stablehlo")
  assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_the_page_of_a_greedy_run_opens_the_program_that_is_there(tmp_path):
  config = exported.config()
  config = dataclasses.replace(config, decode=dataclasses.replace(config.decode, beam_size=1))
  run = runs.open(random_run(config, tmp_path / "run"))
  page = stablehlo._card(run, run.model(), inside=True).decode()
  assert stablehlo._programs(config) == {"greedy.jax": 1}
  assert 'with open("greedy.jax", "rb")' in page and "beam.jax" not in page
  assert "a length from 2 to 61. Each" in page and "`[sentences, length + 17]`" in page


def test_parameters_beside_the_programs_may_fill_more_than_a_file(tmp_path, monkeypatch):
  monkeypatch.setattr(stablehlo, "_MOST_BYTES", 1000)
  monkeypatch.setattr(stablehlo, "_program", lambda *_, inside: str(inside).encode())
  run = SimpleNamespace(provenance=[], imported=None, averaged=None, metrics=[])
  model = Model(exported.config(), {"a": {"b": np.arange(300, dtype=np.float32)}}, exported.tokenizer(), 5)
  stablehlo.write(tmp_path, run, model, "beside")
  assert (tmp_path / "beam.jax").read_bytes() == (tmp_path / "greedy.jax").read_bytes() == b"False"
  with np.load(tmp_path / "parameters.npz") as file:
    assert {name: array.tolist() for name, array in file.items()} == {"a/b": [*range(300)]}
  page = (tmp_path / "README.md").read_text()
  assert 'numpy.load("parameters.npz")' in page and "search(parameters, rows)" in page
