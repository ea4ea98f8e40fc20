"""Averaged checkpoints: which are taken, that their mean is what decodes, and each mistake in one sentence."""

import dataclasses
import datetime
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import weakref
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from etils import epath

import train
from tests.model.example import random_state
from tests.runs.test_full_disk import files_end_at
from transformer_jax import runs
from transformer_jax.__main__ import main
from transformer_jax.config import Config, DecodeConfig, TrainConfig, serialization
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.decoding.translator import Translator
from transformer_jax.recurrent.config import SequenceToSequenceConfig
from transformer_jax.runs import averaging, checkpoint, checkpoint_files, restore, run_folder
from transformer_jax.runs.checkpoint_files import LOSS
from transformer_jax.runtime.errors import InputError, RunError
from transformer_jax.tasks.translation import TASK
from transformer_jax.trainer import loop

CONFIG = Config(
  model=SequenceToSequenceConfig(vocab_size=277, num_layers=1, d_model=5, hidden_size=7),  # of few arrays
  train=TrainConfig(keep=5),
  decode=DecodeConfig(beam_size=2, extra_length=3, max_source_length=16),
)
BEST, GONE, *LAST = STEPS = (1, 2, 3, 5, 7, 11, 13)
# Of the last five, when each was finished.
MINUTES = {BEST: -100.0, 3: 0.0, 5: 9.9, 7: 10.0, 11: 19.5, 13: 20.0}
LINES = ["abc de", "f ghij ab", "de de"]


@pytest.fixture(scope="module")
def state():
  return random_state(CONFIG, TASK)


@pytest.fixture(scope="module")
def params_at(state):
  """The parameters of each step, which have nothing to do with each other."""
  generator = np.random.default_rng(0)

  def different(x):
    return np.float32(x + generator.standard_normal(x.shape) / 2)

  return {step: jax.tree.map(different, state.params) for step in STEPS}


def learned_tokenizer():
  generator = random.Random(0)
  return SentencePieceTokenizer.learn(["".join(generator.choices("abcdefghij ", k=20)) for _ in range(30)], 277)


@pytest.fixture(scope="module")
def folder(state, params_at, tmp_path_factory):
  """A run that keeps its last five checkpoints and the best one, which is older."""
  folder = epath.Path(tmp_path_factory.mktemp("run"))
  run_folder.begin_run(folder, CONFIG, learned_tokenizer(), [{"data": "a text"}])
  checkpoints = checkpoint.Checkpoints(folder, CONFIG.train.keep)
  for step, params in params_at.items():
    checkpoints.save(state.replace(step=np.int32(step), params=params), {LOSS: 1.0 if step == BEST else 2.0})
    checkpoints.wait()
  checkpoints.close()
  return folder


@pytest.fixture(scope="module")
def average_of_three(folder, tmp_path_factory):
  """The folder that the command writes."""
  output = tmp_path_factory.mktemp("averages") / "three"
  assert main(["average", "--workdir", str(folder), "--last", "3", "--output", str(output)]) == 0
  return output


def mean_of(params_at, steps):
  return jax.tree.map(lambda *x: np.float32(np.mean(np.float64(x), axis=0)), *[params_at[step] for step in steps])


def assert_equal(a, b):
  jax.tree.map(np.testing.assert_array_equal, a, b)


@pytest.mark.long
def test_the_mean_of_the_last_checkpoints_is_what_decodes(
  average_of_three, folder, params_at, tmp_path, monkeypatch, capfd
):
  found, params, tokenizer, _ = runs.open(average_of_three).model()
  expected = mean_of(params_at, (7, 11, 13))
  assert found == CONFIG
  assert_equal(jax.device_get(params), expected)
  assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {np.dtype(np.float32)}
  by_hand = Translator(CONFIG, expected, tokenizer)
  (tmp_path / "stdin").write_text("\n".join(LINES))
  with open(tmp_path / "stdin") as file:
    monkeypatch.setattr(sys, "stdin", file)
    assert main(["translate", "--workdir", str(average_of_three), "--scores"]) == 0
  assert capfd.readouterr().out == "".join(
    f"{translation.score:.6f}\t{translation.text}\n" for translation in by_hand.translate(LINES, return_scores=True)
  )
  pairs = list(zip(LINES, reversed(LINES), strict=True))
  averaged, last = Translator.load(average_of_three).score(pairs), Translator.load(folder).score(pairs)
  assert averaged == by_hand.score(pairs)
  assert all(abs(a.log_probability - b.log_probability) > 0.1 for a, b in zip(averaged, last, strict=True))


def test_the_folder_says_what_was_averaged(average_of_three, folder):
  first, last = runs.open(epath.Path(average_of_three)).provenance
  assert first == {"data": "a text"}
  assert last["averaged"] == {"run": str(folder), "steps": [13, 11, 7]}
  assert (average_of_three / "config.json").read_bytes() == (folder / "config.json").read_bytes()
  assert (average_of_three / "tokenizer.model").read_bytes() == (folder / "tokenizer.model").read_bytes()
  assert [path.name for path in (average_of_three / "checkpoints").iterdir()] == ["13"]


def test_the_command_says_which_steps(folder, tmp_path, capfd):
  assert main(["average", "--workdir", str(folder), "--last", "2", "--output", str(tmp_path / "two")]) == 0
  assert capfd.readouterr().out == f"{tmp_path / 'two'} holds the mean of the checkpoints of steps 13, 11\n"


def saved(folder, state, keeps, best):
  """A run folder in which checkpoints were saved with these `keep`, as a run that is resumed may change it."""
  config = dataclasses.replace(CONFIG, train=TrainConfig(keep=keeps[-1][0], save_every=1))
  run_folder.make_folder(folder, "--workdir")
  run_folder.begin_run(folder, config, learned_tokenizer(), [])
  for keep, steps in keeps:
    checkpoints = checkpoint.Checkpoints(folder, keep)
    for step in steps:
      checkpoints.save(state.replace(step=np.int32(step)), {LOSS: 1.0 if step == best else 2.0})
      checkpoints.wait()
    checkpoints.close()
  return sorted(int(path.name) for path in (folder / "checkpoints").iterdir())


@pytest.mark.parametrize(
  "older", [False, pytest.param(True, marks=pytest.mark.long)], ids=["as it is saved", "as it was saved before"]
)
def test_the_best_one_is_not_one_of_the_last_when_more_are_kept_later(state, tmp_path, older):
  folder = epath.Path(tmp_path / "run")
  assert saved(folder, state, [(1, range(1, 6)), (5, (6, 7))], best=2) == [2, 5, 6, 7]
  for path in (folder / "checkpoints").glob("*/previous") if older else []:
    path.rmtree()
  with pytest.raises(InputError, match=r"--last is 4, but .* has fewer checkpoints \(steps: 7, 6, 5\)"):
    averaging.average(folder, tmp_path / "four", 4)
  assert averaging.average(folder, tmp_path / "three", 3) == [7, 6, 5]


def test_the_last_are_those_that_are_there_when_fewer_are_kept_later(state, tmp_path):
  folder = epath.Path(tmp_path / "run")
  assert saved(folder, state, [(3, (2, 4, 5, 9)), (1, ())], best=9) == [4, 5, 9]
  assert averaging.average(folder, tmp_path / "three", 3) == [9, 5, 4]


def test_a_checkpoint_that_only_a_signal_asked_for_does_not_count(state, tmp_path):
  folder = epath.Path(tmp_path / "run")
  folder.mkdir()
  run_folder.begin_run(folder, CONFIG, learned_tokenizer(), [])
  for part in ((2, 3, 5, -7), (11, -13, -17), ()):  # each ends by a signal, and the last ends at once
    save_all(folder, state, 3, part)
  there = {int(path.name) for path in (folder / "checkpoints").iterdir()}
  assert there == {3, 5, 11, 17}  # the last three that an uninterrupted run has, and the newest
  assert averaging.average(folder, tmp_path / "three", 3) == [11, 5, 3]
  assert averaging.average(folder, tmp_path / "named", 2, step=17) == [17, 11]
  with pytest.raises(InputError, match=r"\(steps: 11, 5, 3\): .*one that only a signal asked for does not count"):
    averaging.average(folder, tmp_path / "four", 4)


def test_the_checkpoint_that_a_signal_asked_for_counts_if_the_run_ends_with_it(state, tmp_path):
  folder = epath.Path(tmp_path / "run")
  folder.mkdir()
  config = dataclasses.replace(CONFIG, train=TrainConfig(keep=5, steps=17))
  run_folder.begin_run(folder, config, learned_tokenizer(), [])
  save_all(folder, state, 5, (11, -13, -17))
  assert averaging.average(folder, tmp_path / "two", 2) == [17, 11]


def test_checkpoints_that_only_signals_asked_for_fill_the_number_that_is_kept(state, tmp_path):
  folder = epath.Path(tmp_path / "run")
  (folder / "checkpoints").mkdir(parents=True)

  def there():
    return {int(path.name) for path in (folder / "checkpoints").iterdir()}

  save_all(folder, state, 3, (-2, -3, -5, -7))
  assert there() == {3, 5, 7}
  save_all(folder, state, 3, (11,))
  assert there() == {5, 7, 11}
  save_all(folder, state, 3, (13, 17, -19))
  assert there() == {11, 13, 17, 19}


def save_all(folder, state, keep, steps):
  """Saves checkpoints one after another; a negative step is one that only a signal asks for."""
  checkpoints = checkpoint.Checkpoints(folder, keep=keep)
  for step in steps:
    checkpoints.save(state.replace(step=np.int32(abs(step))), None, planned=step > 0)
    checkpoints.wait()
  checkpoints.close()


def test_records_that_name_each_other_end(state, tmp_path):
  folder = epath.Path(tmp_path / "run")
  assert saved(folder, state, [(3, (2, 3))], best=3) == [2, 3]
  (folder / "checkpoints" / "2" / "previous" / "metadata").write_text('{"step": 3, "planned": true}')
  assert averaging.average(folder, tmp_path / "two", 2) == [3, 2]


@pytest.mark.parametrize(
  ("step", "last", "expected"),
  [("last", 2, [13, 11]), (11, 2, [11, 7]), (5, 2, [5, 3]), (BEST, 1, [1]), ("best", 1, [1])],
)
def test_the_newest_may_be_chosen(folder, tmp_path, step, last, expected):
  assert averaging.average(folder, tmp_path / "average", last, step=step) == expected


@pytest.mark.parametrize(
  ("steps", "keep", "every", "expected"),
  [
    ([50, 40, 30], 3, 10, [50, 40, 30]),
    ([50, 40, 30, 10], 3, 10, [50, 40, 30]),  # one more than are kept: the best
    ([50, 40, 10], 3, 10, [50, 40]),  # too far away
    ([50, 45, 40, 30, 20], 5, 5, [50, 45, 40, 30, 20]),  # saved more often since
    ([50, 45, 40, 30, 10], 5, 5, [50, 45, 40, 30]),
    ([52, 31, 7], 3, 0, [52, 31, 7]),  # saved at the ends of parts only
    ([50], 3, 10, [50]),
    ([], 3, 10, []),
  ],
)
def test_the_last_of_older_runs(tmp_path, steps, keep, every, expected):
  config = dataclasses.replace(CONFIG, train=TrainConfig(keep=keep, save_every=every))
  assert list(averaging._saved_in_a_row(epath.Path(tmp_path), config, steps)) == expected


def test_a_checkpoint_that_training_deletes_meanwhile_is_no_mistake(folder, tmp_path, monkeypatch, params_at):
  run = epath.Path(shutil.copytree(folder, tmp_path / "run"))
  read_params = restore.read_params

  def read(workdir, config, step):
    if step == 7:
      (run / "checkpoints" / "7").rmtree()
      monkeypatch.undo()
      shutil.copytree(run / "checkpoints" / "13", run / "checkpoints" / "17")
      (run / "checkpoints" / "17" / "previous" / "metadata").write_text('{"step": 13}')
    return read_params(workdir, config, step)

  monkeypatch.setattr(restore, "read_params", read)
  assert averaging.average(run, tmp_path / "average", 3) == [17, 13, 11]


def test_a_checkpoint_knows_when_it_was_finished(state, tmp_path):
  checkpoints = checkpoint.Checkpoints(epath.Path(tmp_path), 5)
  times = [datetime.datetime.now(datetime.UTC)]
  for step in LAST[:2]:
    checkpoints.save(state.replace(step=np.int32(step)), None)
    checkpoints.wait()
    times.append(datetime.datetime.now(datetime.UTC))
  checkpoints.close()
  found = checkpoint_files.finish_times(epath.Path(tmp_path))
  assert list(found) == LAST[:2]
  for finished, before, after in zip(found.values(), times[:-1], times[1:], strict=True):
    assert before <= finished <= after


@pytest.fixture(scope="module")
def slow_folder(folder, tmp_path_factory):
  """The same run, as if its checkpoints had been written at `MINUTES`."""
  copy = tmp_path_factory.mktemp("slow") / "run"
  shutil.copytree(folder, copy)
  for step, minutes in MINUTES.items():
    path = copy / "checkpoints" / str(step) / "_CHECKPOINT_METADATA"
    written = json.loads(path.read_text())
    assert "commit_timestamp_nsecs" in written
    path.write_text(json.dumps(written | {"commit_timestamp_nsecs": 10**18 + int(minutes * 60) * 10**9}))
  return copy


@pytest.mark.parametrize(
  ("last", "minutes", "steps"),
  [(3, 10, [13, 7, 3]), (2, 0.5, [13, 11]), (3, 0.5, [13, 11, 7]), (3, 0.6, [13, 7, 3]), (1, 99, [13])],
)
def test_checkpoints_are_chosen_by_time(slow_folder, params_at, tmp_path, last, minutes, steps):
  assert averaging.average(slow_folder, tmp_path / "average", last, minutes) == steps
  params = runs.open(tmp_path / "average").model().params
  assert_equal(jax.device_get(params), mean_of(params_at, steps))


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"--last": "0"}, "--last is 0, but must be positive"),
    ({"--step": "5", "--last": "3"}, "--last is 3, but RUN has fewer checkpoints up to step 5 (steps: 5, 3): "),
    ({"--step": "best"}, "--last is 2, but RUN has fewer checkpoints up to step 1 (steps: 1): "),
    ({"--step": "4"}, "RUN has no checkpoint of step 4: it has those of steps 1, 3, 5, 7, 11, 13"),
    (
      {"--step": "5", "--workdir": "EMPTY"},
      "EMPTY has fewer checkpoints (steps: none): train on until there are some; ",
    ),
    ({"--last": "6"}, "--last is 6, but RUN has fewer checkpoints (steps: 13, 11, 7, 5, 3): "),
    ({"--last": "4", "--minutes": "10"}, "--last is 4, but RUN has fewer checkpoints at least 10 minutes apart (steps"),
    ({"--minutes": "nan"}, "--minutes is nan, but must be positive"),
    ({"--minutes": "0"}, "--minutes is 0.0, but must be positive"),
    ({"--last": "some"}, "argument --last: 'some' is not a whole number"),
    ({"--workdir": "/nowhere"}, "/nowhere is not a run folder"),
    ({"--workdir": "EMPTY"}, "EMPTY has fewer checkpoints (steps: none): train on until there are some; "),
    ({"--output": "RUN"}, "RUN holds a run already: choose another --output"),
    ({"--output": "FULL"}, "FULL holds files already: choose another --output"),
    ({"--output": "FULL/file"}, "the run folder FULL/file cannot be written: File exists; choose another --output"),
  ],
)
def test_a_mistake_ends_in_one_line_and_status_2(slow_folder, tmp_path, capfd, changes, message):
  full, empty = tmp_path / "full", tmp_path / "empty"
  full.mkdir()
  (full / "file").write_text("")
  shutil.copytree(slow_folder, empty, ignore=shutil.ignore_patterns("checkpoints"))

  def named(text):
    for name, path in (("RUN", slow_folder), ("FULL", full), ("EMPTY", empty)):
      text = text.replace(name, str(path))
    return text

  options = {"--workdir": "RUN", "--last": "2", "--output": str(tmp_path / "output"), **changes}
  assert main(["average", *[named(word) for option in options.items() for word in option]]) == 2
  out, err = capfd.readouterr()
  assert (out, err.count("\n")) == ("", 1)
  assert err.startswith("transformer-jax: error: ") and named(message) in err
  assert not (tmp_path / "output").exists()


def test_what_a_thread_writes_after_the_failure_is_deleted_too(tmp_path, monkeypatch):
  late = tmp_path / "late"

  def written_late(seconds):
    if late.exists():
      return
    late.write_text("")
    (tmp_path / "output" / "checkpoints").mkdir()

  monkeypatch.setattr(averaging, "time", SimpleNamespace(sleep=written_late))
  with pytest.raises(RunError), averaging._filled_or_emptied(epath.Path(tmp_path / "output")):
    (tmp_path / "output").mkdir()
    (tmp_path / "output" / "checkpoints").mkdir()
    raise RunError("the disk is full")
  assert late.exists() and not [*(tmp_path / "output").iterdir()]


def test_a_damaged_checkpoint_is_one_sentence(slow_folder, tmp_path, capfd):
  shutil.copytree(slow_folder, tmp_path / "run")
  damaged = max((tmp_path / "run" / "checkpoints" / "11" / "params").rglob("*"), key=lambda path: path.stat().st_size)
  content = bytearray(damaged.read_bytes())
  content[len(content) // 2] ^= 1
  damaged.write_bytes(content)
  options = ["--workdir", str(tmp_path / "run"), "--last", "3", "--output", str(tmp_path / "output")]
  assert main(["average", *options]) == 1
  line = capfd.readouterr().err.splitlines()[-1]
  assert line.startswith(f"transformer-jax: error: the checkpoint of step 11 in {tmp_path / 'run'} cannot be read: ")


@pytest.mark.parametrize("is_there", [False, True])
def test_a_full_disk_leaves_the_folder_as_it_was_so_that_the_same_command_works_afterwards(
  folder, tmp_path, capfd, is_there
):
  output = tmp_path / "output"
  if is_there:
    output.mkdir()
  command = ["average", "--workdir", str(folder), "--last", "2", "--output", str(output)]
  with files_end_at(300):
    assert main(command) == 1
  line = capfd.readouterr().err.splitlines()[-1]
  assert line.startswith(f"transformer-jax: error: a checkpoint in {output} could not be written: File too large")
  assert output.exists() == is_there and not [*tmp_path.rglob("output/*")]
  assert main(command) == 0
  assert runs.open(output).model().step == 13


def test_a_ctrl_c_removes_the_new_folder(folder, tmp_path, monkeypatch):
  def interrupted(workdir, *_):
    assert (workdir / "checkpoints").exists()
    raise KeyboardInterrupt

  monkeypatch.setattr(run_folder, "begin_run", interrupted)
  assert main(["average", "--workdir", str(folder), "--last", "2", "--output", str(tmp_path / "output")]) == 130
  assert not (tmp_path / "output").exists()


def test_a_folder_of_a_bucket_is_only_there_with_a_file(tmp_path):
  folder = epath.Path(tmp_path / "output")
  with averaging._filled_or_emptied(folder):
    folder.mkdir()
    (folder / "file").write_text("")
  with pytest.raises(InputError, match="holds files already"), averaging._filled_or_emptied(folder):
    pass
  assert (folder / "file").exists()


def test_two_do_not_write_one_folder_and_the_second_deletes_nothing_of_the_first(folder, tmp_path, capfd, monkeypatch):
  command = ["average", "--workdir", str(folder), "--last", "2", "--output", str(tmp_path / "output")]
  monkeypatch.setattr(run_folder, "begin_run", lambda *args, begin=run_folder.begin_run: (main(command), begin(*args)))
  assert main(command) == 0
  assert f"another process writes in {tmp_path / 'output'}: wait for its end, or choose another --output" in (
    capfd.readouterr().err
  )
  assert runs.open(tmp_path / "output").model().step == 13


def test_a_sigterm_removes_the_new_folder(folder, tmp_path, monkeypatch):
  def terminated(workdir, *_):
    assert (workdir / "checkpoints").exists() and signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    os.kill(os.getpid(), signal.SIGTERM)

  monkeypatch.setattr(run_folder, "begin_run", terminated)
  with pytest.raises(SystemExit) as ended:
    main(["average", "--workdir", str(folder), "--last", "2", "--output", str(tmp_path / "output")])
  assert ended.value.code == 143 and not (tmp_path / "output").exists()


def test_how_many_must_be_said(folder, tmp_path, capfd):
  assert main(["average", "--workdir", str(folder), "--output", str(tmp_path / "output")]) == 2
  assert "required: --last" in capfd.readouterr().err


@pytest.mark.long
def test_train_py_does_not_go_on_from_it(average_of_three, folder):
  program = [sys.executable, Path(train.__file__), f"--workdir={average_of_three}"]
  done = subprocess.run(program, capture_output=True, text=True)
  assert (done.returncode, done.stdout) == (2, "")
  [error] = [line for line in done.stderr.splitlines() if not line.endswith(" ...")]
  assert error.startswith(
    f"transformer-jax: error: {average_of_three} holds averaged parameters without an optimizer, "
  )
  assert str(folder) in error
  with pytest.raises(InputError, match="holds averaged parameters"):
    loop.train(serialization.validated(CONFIG), epath.Path(average_of_three))


def test_the_sum_is_exact_and_one_checkpoint_is_in_memory_at_a_time():
  values, alive = [1e8, 1.0, -1e8, 1.0], []

  def tree(value):
    array = np.full((5, 7), value, np.float32)
    alive.append(weakref.ref(array))
    return {"weights": array}

  def trees():
    for value in values:
      assert all(reference() is None for reference in alive)
      yield tree(value)

  found = averaging.mean(trees())["weights"]
  assert found.dtype == np.float32
  np.testing.assert_array_equal(found, np.full((5, 7), 0.5))  # in float32, 1e8 + 1 is 1e8


def test_a_day_between_two_checkpoints_is_more_than_ten_minutes():
  start = datetime.datetime(2026, 1, 1)
  assert averaging.chosen({3: start, 5: start + datetime.timedelta(days=1, minutes=5)}, 2, 10) == [5, 3]


def test_full_memory_is_not_called_a_checkpoint_that_cannot_be_read(folder, tmp_path, monkeypatch):
  def read(*_):
    raise MemoryError

  monkeypatch.setattr(restore, "read_params", read)
  with pytest.raises(MemoryError):
    averaging.average(folder, tmp_path / "average", 2)
  assert not (tmp_path / "average").exists()
