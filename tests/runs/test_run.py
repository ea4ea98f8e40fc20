"""A run that is opened: what it tells of its folder, and which of its checkpoints is read."""

import json
import shutil

import jax
import numpy as np
import pytest
from etils import epath

from tests.model.example import random_state
from tests.runs.test_checkpoint import CONFIG, at_step
from transformer_jax import runs
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.runs import checkpoint, reading, run_folder
from transformer_jax.runs.checkpoint_files import LOSS
from transformer_jax.runtime.errors import InputError, RunError
from transformer_jax.tasks.translation import TASK

LOSSES = {2: 1.5, 3: 1.0, 5: 1.0, 7: 2.0, 11: None}
HISTORY = [{"data": "a text", "machine": {"kind": "cpu"}}]


@pytest.fixture(scope="module")
def state():
  return random_state(CONFIG, TASK)


def params_at(state, step):
  return jax.tree.map(lambda x: x + np.float32(step), state.params)


@pytest.fixture(scope="module")
def original(state, tmp_path_factory):
  """A run with checkpoints of five steps, whose parameters tell them apart."""
  folder = epath.Path(tmp_path_factory.mktemp("run"))
  run_folder.begin_run(folder, CONFIG, SentencePieceTokenizer.learn(["a b c " * 7], 265), HISTORY)
  checkpoints = checkpoint.Checkpoints(folder, keep=5)
  for step, loss in LOSSES.items():
    checkpoints.save(at_step(state.replace(params=params_at(state, step)), step), loss and {LOSS: loss})
    checkpoints.wait()
  checkpoints.close()
  return folder


@pytest.fixture
def folder(original, tmp_path):
  return epath.Path(shutil.copytree(original, tmp_path / "run"))


def test_what_is_no_run_folder_is_told(original, tmp_path):
  (tmp_path / "file").write_text("")
  (tmp_path / "empty").mkdir()
  shutil.copytree(original, tmp_path / "one" / "x", ignore=shutil.ignore_patterns("checkpoints"))
  for i in range(11):
    shutil.copytree(original, tmp_path / "runs" / f"run{i:02}", ignore=shutil.ignore_patterns("checkpoints"))
  (tmp_path / "runs" / "latest").symlink_to("/usr/bin")  # of a folder that is no run nothing is read
  shown = ", ".join(f"run{i:02}" for i in range(9))
  for name, message in {
    "nope": "it does not exist; check the path",
    "file": "it is a file; check the path",
    "one": "it has no config.json, but holds the run x: name a run",
    "empty": "it has no config.json; check the path",
    "runs": f"it has no config.json, but holds the runs {shown} and 2 more: name a run",
  }.items():
    with pytest.raises(InputError) as error:
      runs.open(tmp_path / name)
    assert str(error.value) == f"{tmp_path / name} is not a run folder: {message}"


def test_it_tells_what_is_in_the_folder(original):
  run = runs.open(original)
  assert run.path == original
  assert run.config == CONFIG
  assert run.tokenizer.vocab_size == 265
  assert run.provenance == HISTORY
  assert run.checkpoints == ((2, 3, 5, 7, 11), 11, 5)  # of the two best the newer
  assert run.metrics == []
  assert runs.open(run) is run


def test_files_are_read_once_and_what_training_changes_again(folder):
  run = runs.open(folder)
  tokenizer = run.tokenizer
  assert run.checkpoints.last == 11
  shutil.rmtree(folder / "checkpoints" / "11")
  (folder / "tokenizer.model").unlink()
  lines = [{"step": 1, "split": "train", "loss": 3.5}, {"step": 2, "split": "validation", "loss": 3.0}]
  (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"step": 3, "spl')
  assert run.tokenizer is tokenizer
  assert run.checkpoints.last == 7
  assert run.metrics == lines  # the last line is being written


def test_a_line_of_the_log_that_is_none_is_named(folder):
  (folder / "metrics.jsonl").write_text('{"step": 1, "split": "train"}\nnonsense\n')
  with pytest.raises(InputError, match=r"metrics\.jsonl, line 2 is no line of the log"):
    _ = runs.open(folder).metrics


@pytest.mark.parametrize(
  "damage",
  ["", '{"validation_loss": 1' + "0" * 400 + "}", "[1]", '{"validation_loss": "x"}', '{"validation_loss": NaN}'],
)
def test_a_loss_that_is_damaged_or_no_number_makes_no_best(folder, damage):
  (folder / "checkpoints" / "5" / "metrics" / "metrics").write_text(damage)
  assert runs.open(folder).checkpoints.best == 3


def test_where_no_loss_is_a_number_no_checkpoint_is_the_best(folder):
  for path in (folder / "checkpoints").glob("*/metrics/metrics"):
    path.write_text('{"validation_loss": NaN}')
  assert runs.open(folder).checkpoints.best is None


def test_what_is_called_by_no_number_is_no_checkpoint(folder):
  (folder / "checkpoints" / "²").mkdir()
  assert runs.open(folder).checkpoints.last == 11


def test_a_file_in_the_place_of_the_checkpoints_is_named(folder):
  shutil.rmtree(folder / "checkpoints")
  (folder / "checkpoints").write_text("")
  with pytest.raises(InputError, match="checkpoints is a file, but must be the folder of the checkpoints"):
    runs.open(folder).model()


def test_a_run_before_its_first_checkpoint_has_none(folder):
  shutil.rmtree(folder / "checkpoints")
  run = runs.open(folder)
  assert run.checkpoints == ((), None, None)
  for step in ("last", "best", 3):
    with pytest.raises(InputError, match="has no finished checkpoint yet"):
      run.model(step=step)


@pytest.mark.parametrize(("step", "expected"), [("last", 11), ("best", 5), (3, 3), (np.int64(11), 11)])
def test_the_checkpoint_that_is_asked_for(original, state, step, expected):
  config, params, tokenizer, found = runs.open(original).model("translate", step)
  assert (config, tokenizer.vocab_size, found) == (CONFIG, 265, expected)
  jax.tree.map(np.testing.assert_array_equal, params, params_at(state, expected))


@pytest.mark.parametrize(
  ("step", "message"),
  [
    (4, "RUN has no checkpoint of step 4: it has those of steps 2, 3, 5, 7, 11"),
    ("beste", "step is 'beste', but must be a number, last or best"),
    (-1, "step is -1, but must be a number, last or best"),
    (True, "step is True, but must be a number, last or best"),
    ("5", "step is '5', but must be a number, last or best"),
  ],
)
def test_a_step_that_is_not_there_is_one_sentence(original, step, message):
  with pytest.raises(InputError) as raised:
    runs.open(original).model(step=step)
  assert str(raised.value) == message.replace("RUN", str(original))


def test_where_nothing_was_validated_nothing_is_the_best(folder):
  for path in (folder / "checkpoints").glob("*/metrics"):
    path.rmtree()
  run = runs.open(folder)
  assert run.checkpoints.best is None
  with pytest.raises(InputError, match=r"has a validation loss, .* choose the step `last` or one of 2, 3, 5, 7, 11; "):
    run.model(step="best")


def test_a_model_for_something_else_is_refused(original):
  with pytest.raises(InputError, match="use it with `translate`"):
    runs.open(original).model("generate")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_only_the_last_is_replaced_by_an_older_one_where_it_is_damaged(folder, state, capfd):
  (folder / "checkpoints" / "11" / "params").rmtree()
  run = runs.open(folder)
  run.said = 11  # as a command says before
  found = run.model()
  assert found.step == 7
  jax.tree.map(np.testing.assert_array_equal, found.params, params_at(state, 7))
  first, last = capfd.readouterr().err.splitlines()
  assert first.startswith("the checkpoint of step 11 is damaged and not used: ")
  assert last == "the checkpoint of step 7 is used in its place"
  with pytest.raises(
    RunError, match=r"the checkpoint of step 11 in .* is damaged, .*: choose another step, one of 2, 3, 5, 7$"
  ):
    run.model(step=11)


def test_the_best_is_looked_for_again_where_training_replaces_it(folder, capfd):
  """A new best one is saved, and the one before it deleted, while that is read."""

  def read(step):
    if step == 5:
      (folder / "checkpoints" / "5").rename(folder / "checkpoints" / "13")
      raise ValueError("a file is gone")
    return step

  assert reading.newest_intact(folder, read, "best") == (13, 13)
  assert capfd.readouterr().err == ""


def test_the_command_for_a_first_checkpoint_is_quoted(folder, tmp_path):
  shutil.rmtree(folder / "checkpoints")
  shutil.copytree(folder, tmp_path / "my run")
  with pytest.raises(InputError, match=r"train --workdir='.*/my run'` makes one"):
    runs.open(tmp_path / "my run").model()
