"""--step: which checkpoint of a run a command uses, and that it says which."""

import jax
import numpy as np
import pytest
from etils import epath

from tests.commands.lines import LINES, text
from tests.example_commands import RESTORING, command_line, make_run
from tests.model.example import random_state
from transformer_jax import runs
from transformer_jax.decoding.generator import Generator
from transformer_jax.decoding.translator import Translator
from transformer_jax.language.config import BERTClassifierConfig, GPTConfig
from transformer_jax.runs import checkpoint
from transformer_jax.runs.checkpoint_files import LOSS
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks.classifier import Classifier
from transformer_jax.tasks.translation import TASK


@pytest.fixture
def run(monkeypatch, capfdbinary, tmp_path):
  """Runs a command on some input: (status, output, all lines on stderr)."""
  return command_line(monkeypatch, capfdbinary, tmp_path, every_line=True)


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
  """A run with the checkpoints of steps 0, 3 and 5, of which that of step 3 is the best."""
  workdir = epath.Path(make_run(tmp_path_factory.mktemp("run")))
  checkpoints = checkpoint.Checkpoints(workdir, keep=3)
  state = random_state(runs.open(workdir).config, TASK)
  generator = np.random.default_rng(0)
  for step, loss in ((3, 0.5), (5, 0.7)):
    params = jax.tree.map(lambda x: np.float32(x + generator.standard_normal(x.shape)), state.params)
    checkpoints.save(state.replace(step=np.int32(step), params=params), {LOSS: loss})
    checkpoints.wait()
  checkpoints.close()
  return workdir


@pytest.mark.long
def test_translations_are_those_of_the_best(run, steps):
  expected = {step: Translator.load(steps, step=step).translate(LINES) for step in ("best", 3, "last")}
  assert expected["best"] == expected[3] != expected["last"]
  status, out, err = run("translate", "--workdir", steps, "--step", "best", stdin=text(LINES).encode())
  assert (status, out) == (0, text(expected["best"]))
  assert err == ["restoring the checkpoint of step 3, the best by validation loss"]


@pytest.fixture
def loaded(monkeypatch):
  """The runs and steps that are asked for; nothing is restored."""
  asked = []

  def load(run, *, step):
    asked.append((run.path, step))
    raise InputError("as it happens")

  for kind in (Translator, Generator, Classifier):
    monkeypatch.setattr(kind, "load", load)
  return asked


@pytest.mark.parametrize(
  ("argv", "model"),
  [
    (["translate"], None),
    (["evaluate", "--source", "TEXT", "--reference", "TEXT"], None),
    (["generate", "--prompt", "a"], GPTConfig(vocab_size=277, num_layers=1, d_model=8, d_ff=13, num_heads=2)),
    (["classify"], BERTClassifierConfig(vocab_size=277, num_layers=1, d_model=8, d_ff=13, num_heads=2)),
  ],
  ids=lambda value: value[0] if isinstance(value, list) else "",
)
@pytest.mark.parametrize(
  ("given", "asked", "said"),
  [
    ([], "last", ["restoring the checkpoint of step 5, the last"]),
    (["--step", "last"], "last", ["restoring the checkpoint of step 5, the last"]),
    (["--step", "best"], "best", ["restoring the checkpoint of step 3, the best by validation loss"]),
    (["--step", "0"], 0, ["restoring the checkpoint of step 0"]),
    (["--step", "4"], 4, []),  # which `Run.model` refuses
  ],
  ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_each_command_takes_the_step(run, steps, tmp_path, monkeypatch, loaded, argv, model, given, asked, said):
  (tmp_path / "text").write_text("abc\n")
  argv = [str(tmp_path / "text") if word == "TEXT" else word for word in argv]
  if model:
    init = runs.Run.__init__

    def of_another_model(self, *arguments):
      init(self, *arguments)
      self.config.model = model

    monkeypatch.setattr(runs.Run, "__init__", of_another_model)
  status, _, err = run(*argv, "--workdir", steps, *given)
  assert (status, loaded) == (2, [(steps, asked)])
  assert [line for line in err if line.startswith(RESTORING)] == said


@pytest.mark.parametrize("step", ["best", 0])
def test_a_report_translates_with_the_step(run, steps, tmp_path, loaded, step):
  for language in ("en", "de"):
    (tmp_path / f"text.{language}").write_text("abc\n")
  argv = ["--data", tmp_path / "text", "--output", tmp_path / "page.html", "--step", step]
  assert run("report", "--workdir", steps, *argv)[0] == 2
  assert loaded == [(steps, step)]


@pytest.mark.parametrize("step", ["beste", "-1", "1.5", ""])
def test_a_step_that_is_none_is_one_sentence(run, steps, step):
  status, out, err = run("translate", "--workdir", steps, f"--step={step}")
  assert (status, out, len(err)) == (2, "", 1)
  assert f"argument --step: {step!r} must be the number of a step, last or best" in err[0]


def test_a_step_that_is_not_there_is_one_sentence(run, steps):
  status, out, err = run("translate", "--workdir", steps, "--step", 4)
  assert (status, out) == (2, "")
  assert err == [f"transformer-jax: error: {steps} has no checkpoint of step 4: it has those of steps 0, 3, 5"]
