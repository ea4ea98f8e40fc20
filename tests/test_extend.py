"""The examples of docs/extend.md, as they stand there but for the number of updates."""

import importlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.example import random_params
from transformer_jax import registry, runs
from transformer_jax.__main__ import main
from transformer_jax.config import Config, Corpus, DataConfig, TrainConfig
from transformer_jax.data import corpus
from transformer_jax.decoding.translator import Translator
from transformer_jax.inside.model_parts import model_parts
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.transformer import Transformer
from transformer_jax.runtime.errors import InputError
from transformer_jax.training.task import task_of

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extend.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
TOML = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [
  line for block in re.findall(r"```\n(transformer-jax.*?)```", PAGE, re.DOTALL) for line in block.splitlines()
]
TINY = Config(
  data=DataConfig(corpus=Corpus.REGISTERED, dataset="my-corpus", row_length=64),
  model=ModelConfig(vocab_size=300, num_layers=1, d_model=16, d_ff=19, num_heads=2),
  train=TrainConfig(steps=2, batch_tokens=128, warmup_steps=3),
)


def example(start: str) -> str:
  """The one example that has this line."""
  [found] = [source for source in PYTHON if start in source]
  return re.sub(r"steps=\d+00\b", "steps=2", found).replace("warmup_steps=2", "warmup_steps=3")


@pytest.fixture
def installed(tmp_path, monkeypatch):
  """The packages of the page, installed; the working folder is an empty one."""
  for name in ("my_corpus", "my_model", "my_task"):
    (tmp_path / f"{name}.py").write_text(example(f"# {name}.py"))
    monkeypatch.delitem(sys.modules, name, raising=False)
  for source in TOML:
    told = tomllib.loads(source)
    project = told["project"]
    [place] = [place for names in project["entry-points"].values() for place in names.values()]
    # Otherwise setuptools refuses a folder with another file beside it, or installs nothing.
    assert told["tool"] == {"setuptools": {"py-modules": [place.partition(":")[0]]}}
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = [
      f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in names.items())
      for group, names in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("".join(points))
  monkeypatch.syspath_prepend(str(tmp_path))
  monkeypatch.setattr(registry, "_FAMILIES", dict(registry._FAMILIES))
  monkeypatch.setattr(corpus, "_REGISTERED", {})
  folder = tmp_path / "elsewhere"
  folder.mkdir()
  monkeypatch.chdir(folder)
  return folder


def test_no_example_is_longer_than_fifteen_lines():
  assert len(PYTHON) == 8 and len(TOML) == 2 and len(COMMANDS) == 3
  for source in [*PYTHON, *TOML]:
    assert len([line for line in source.splitlines() if line]) <= 15, source


@pytest.mark.long
def test_a_model_by_itself():
  found = {}
  exec(example("model = Transformer("), found)
  assert found["hidden"].shape == (3, 32) and found["logits"].shape == (3, 100)
  # Padding and what comes later are hidden by default.
  padded = jnp.pad(found["source"], (0, 2)), jnp.pad(found["target"], (0, 3))
  again = found["apply"](found["params"], *padded)[:3]
  np.testing.assert_allclose(again, found["hidden"], rtol=1e-5, atol=1e-6)


@pytest.mark.long
def test_the_training_step_by_itself(installed):
  found = {}
  exec(example("def fit("), found)
  state, metrics = found["fit"](TINY, 2)
  assert int(state.step) == 2 and np.isfinite(metrics["sums"].loss) and not metrics["skipped"]


@pytest.mark.long
def test_a_corpus_in_one_program(installed):
  exec(example("corpus.register("), {})
  run = runs.open("runs/my-corpus")
  assert run.config.data.dataset == "my-corpus" and run.metrics[-1]["step"] == 2


@pytest.mark.long
def test_a_corpus_on_the_command_line(installed, capsys):
  arguments = next(command for command in COMMANDS if "my-corpus" in command).split()[1:]
  sizes = ["vocab_size=280", "num_layers=1", "d_model=16", "d_ff=19", "num_heads=2"]
  quick = ["--config.train.steps=2", "--config.evaluate.every=0", "--config.evaluate.sentences=0"]
  assert main([*arguments, *(f"--config.model.{size}" for size in sizes), *quick]) == 0
  assert runs.open("runs/own-text").metrics[-1]["step"] == 2


@pytest.mark.long
def test_a_family(installed, capsys):
  (installed / "my_config.py").write_text(example("# my_config.py"))
  quick = ["data.corpus=registered", "data.dataset=my-corpus", "evaluate.sentences=0", "decode.extra_length=3"]
  assert main([*COMMANDS[1].split()[1:], *(f"--config.{key}" for key in quick)]) == 0
  run = runs.open("runs/my-model")
  assert type(run.config.model).__name__ == "MyConfig" and run.config.model.memory_scale == 0.7
  [text] = Translator.load("runs/my-model").translate(["forty-two"])
  for to in ("marian-hf", "ctranslate2"):  # which would compute what the Transformer does
    assert main(["export", "--workdir=runs/my-model", f"--to={to}", f"--output={to}"]) == 2
    assert f"the format {to} has no my-model model: choose --to safetensors" in capsys.readouterr().err
    assert not Path(to).exists()
  with pytest.raises(InputError, match=r"config\.model\.family is my-model, a family of another package"):
    model_parts(run.config.model)
  # In a process of its own: nothing there has registered the family.
  environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(installed.parent), str(ROOT)])}
  command = [sys.executable, "-m", "transformer_jax", *COMMANDS[2].split("| ")[1].split()[1:]]
  done = subprocess.run(command, input=b"forty-two\n", capture_output=True, env=environment, check=True)
  assert done.stdout.decode() == f"{text}\n"


def test_an_attention():
  """Its keys have length 1, so longer ones change nothing; in the decoder they are as before."""
  found = {}
  exec(example("# my_attention.py"), found)
  sentence = jnp.array([5, 6, 7, 3]), jnp.array([2, 8, 9])
  model = found["MyAttentionModel"](TINY.model)
  params = jax.jit(model.init)(jax.random.key(0), *sentence)
  assert jax.tree.structure(params) == jax.tree.structure(
    jax.eval_shape(Transformer(TINY.model).init, jax.random.key(0), *sentence)
  )

  def with_long_keys(side, attention):
    return jax.tree_util.tree_map_with_path(
      lambda path, x: 3 * x if {side, attention, "key"} <= {part.key for part in path} else x, params
    )

  apply = jax.jit(model.apply)
  before = apply(params, *sentence)
  np.testing.assert_allclose(apply(with_long_keys("encoder", "attention"), *sentence), before, rtol=1e-5, atol=1e-6)
  assert not np.allclose(apply(with_long_keys("decoder", "cross_attention"), *sentence), before, atol=1e-3)


def test_a_loss(installed):
  """It is that of translation and the penalty, per token."""
  task, own = task_of(TINY.model), importlib.import_module("my_task").TASK
  params = random_params(TINY, task)
  rows = np.zeros((2, 4, 64), np.uint16)
  rows[:, :, :5] = [[7, 8, 9, 10, 2], [1] * 5, [11, 12, 13, 14, 2], [1] * 5]
  theirs, ours = jax.jit(lambda params: [one.batch_sums(TINY, params, rows, None) for one in (task, own)])(params)
  squares = sum(float(np.sum(np.square(x, dtype=np.float64))) for x in jax.tree.leaves(params))
  np.testing.assert_allclose(ours.loss, theirs.loss + 1e-4 * squares * 10, rtol=1e-5)
