"""Checkpoints: which are kept, and that what is restored is what was saved."""

import dataclasses
import errno
import functools
import gc
import itertools
import json
import math
import shutil
import threading

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest
import tensorstore
from etils import epath

from tests.model.example import random_state
from transformer_jax import runs
from transformer_jax.config import Config, DataConfig, Optimizer, Schedule, TrainConfig, serialization
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.recurrent.config import SequenceToSequenceConfig
from transformer_jax.runs import averaging, checkpoint, checkpoint_files, locks, reading, restore, resume, run_folder
from transformer_jax.runs.checkpoint_files import LOSS, SCORE
from transformer_jax.runtime import untrusted
from transformer_jax.runtime.errors import InputError, RunError
from transformer_jax.runtime.files import write_atomically
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.step import abstract_state

CONFIG = Config(
  data=DataConfig(row_length=16),
  model=SequenceToSequenceConfig(vocab_size=265, num_layers=1, d_model=5, hidden_size=7),  # of few arrays
  train=TrainConfig(batch_tokens=64),
)


@functools.cache
def abstract():
  return abstract_state(CONFIG, TASK)


@pytest.fixture(scope="module")
def state():
  return random_state(CONFIG, TASK)


def at_step(state, step):
  return state.replace(step=np.int32(step))


def steps_in(workdir):
  return sorted(int(path.name) for path in (workdir / "checkpoints").iterdir() if path.name.isdigit())


@pytest.mark.long
def test_the_last_and_the_best_are_kept_over_restarts(state, tmp_path):
  losses = {1: 3.0, 2: 1.0, 3: 2.0, 4: None, 5: 1.5}
  for part in ([1, 2, 3], [4, 5]):
    checkpoints = checkpoint.Checkpoints(epath.Path(tmp_path), keep=2)
    for step in part:
      checkpoints.save(at_step(state, step), losses[step] and {LOSS: losses[step]})
    checkpoints.wait()
    checkpoints.close()
  assert steps_in(tmp_path) == [2, 4, 5]


def test_a_loss_that_is_not_a_number_is_never_the_best(tmp_path):
  """The best checkpoint stays, however many come after it."""
  writer = checkpoint_files.Writer(epath.Path(tmp_path), keep=2)
  for step, loss in enumerate([2.0, 1.0, 1.5, math.nan, math.inf, math.nan], 1):
    writer.save(step, {"params": {"a": np.ones(3, np.float32)}}, None, {LOSS: loss})
    writer.wait()
  writer.close()
  assert steps_in(tmp_path) == [2, 5, 6] and reading.finished(epath.Path(tmp_path)).best == 2


def test_what_is_restored_is_what_was_saved(state, tmp_path):
  checkpoints = checkpoint.Checkpoints(epath.Path(tmp_path), keep=2)
  assert checkpoints.restore(abstract()) is None
  checkpoints.save(at_step(state, 3), None)
  checkpoints.wait()
  restored = checkpoints.restore(abstract()).state
  assert int(restored.step) == 3
  assert all(len(x.sharding.device_set) == jax.local_device_count() for x in jax.tree.leaves(restored))
  jax.tree.map(np.testing.assert_array_equal, restored, at_step(state, 3))
  checkpoints.close()


def test_a_moving_average_is_an_item_of_its_own_and_the_one_to_decode_with(state, tmp_path):
  config = dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, ema_decay=0.9))
  average = jax.tree.map(lambda x: x + 1, state.params)
  found = {}
  for name, saved, its_config in (("off", state, CONFIG), ("on", state.replace(average=average), config)):
    folder = epath.Path(tmp_path / name)
    run_folder.make_folder(folder, "--workdir")
    run_folder.begin_run(folder, its_config, SentencePieceTokenizer.learn(["a b c " * 7], 265), [])
    checkpoints = checkpoint.Checkpoints(folder, keep=2)
    checkpoints.save(at_step(saved, 3), None)
    checkpoints.wait()
    jax.tree.map(
      np.testing.assert_array_equal,
      checkpoints.restore(abstract_state(its_config, TASK)).state,
      at_step(saved, 3),
    )
    checkpoints.close()
    found[name] = {path.name for path in (folder / "checkpoints" / "3").iterdir() if path.is_dir()}
    params = runs.open(folder).model().params
    jax.tree.map(np.testing.assert_array_equal, params, saved.params_for_decoding)
  assert found["on"] - found["off"] == {"average"} and found["off"] >= {"params", "optimizer"}


@pytest.mark.parametrize(
  "older", [False, pytest.param(True, marks=pytest.mark.long)], ids=["with sums", "without sums"]
)
def test_a_moving_average_that_is_gone_is_damage(state, tmp_path, capfd, older):
  config = dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, ema_decay=0.9))
  folder, averaged = epath.Path(tmp_path / "run"), epath.Path(tmp_path / "averaged")
  run_folder.make_folder(folder, "--workdir")
  run_folder.begin_run(folder, config, SentencePieceTokenizer.learn(["a b c " * 7], 265), [])
  checkpoints = checkpoint.Checkpoints(folder, keep=2)
  for step in (3, 5):
    checkpoints.save(
      at_step(state.replace(average=jax.tree.map(lambda x, step=step: x + step, state.params)), step), None
    )
    checkpoints.wait()
  checkpoints.close()
  averaging.average(folder, averaged, last=2)
  folders = [folder / "checkpoints" / str(step) for step in (3, 5)] + [averaged / "checkpoints" / "5"]
  for each in folders if older else []:
    (each / "sums").rmtree()

  assert runs.open(folder).model().step == 5
  (folder / "checkpoints" / "5" / "average").rmtree()
  _, params, _, step = runs.open(folder).model()
  assert step == 3
  jax.tree.map(np.testing.assert_array_equal, params, jax.tree.map(lambda x: x + 3, state.params))
  assert "step 5 is damaged and not used: " in (err := capfd.readouterr().err) and "average" in err and "is gone" in err
  (folder / "checkpoints" / "3" / "average").rmtree()
  with pytest.raises(RunError, match=r"every checkpoint in .* is damaged"):
    runs.open(folder).model()
  params = runs.open(averaged).model().params  # of parameters alone, as it was made
  jax.tree.map(np.testing.assert_array_equal, params, state.params)


def test_a_half_written_checkpoint_is_not_used(state, tmp_path):
  checkpoints = checkpoint.Checkpoints(epath.Path(tmp_path), keep=2)
  checkpoints.save(at_step(state, 3), None)
  checkpoints.wait()
  checkpoints.close()
  half = tmp_path / "checkpoints" / "4.orbax-checkpoint-tmp"
  half.mkdir()
  restore.read_params(epath.Path(tmp_path), CONFIG, 3)
  assert half.exists()  # only who trains on may know that nobody writes it
  assert int(checkpoint.Checkpoints(epath.Path(tmp_path), keep=2).restore(abstract()).state.step) == 3
  assert not half.exists()


@pytest.mark.long
def test_a_damaged_validation_loss_costs_no_checkpoint(state, tmp_path, capfd):
  checkpoints = checkpoint.Checkpoints(epath.Path(tmp_path / "run"), keep=1)
  for step in (3, 5):
    checkpoints.save(at_step(state, step), {LOSS: float(step)})
    checkpoints.wait()
  checkpoints.close()
  for number, damage in enumerate(
    [b"", b"{xx", b"\xff", b"[" * 100_000, b"[1]", b"3", b'{"valhdation_loss": 3.0}', b'{"validation_loss": "x"}']
  ):
    folder = epath.Path(tmp_path / str(number))
    shutil.copytree(tmp_path / "run", folder)
    (folder / "checkpoints" / "3" / "metrics" / "metrics").write_bytes(damage)  # the best one until now
    restore.read_params(folder, CONFIG, 3)
    again = checkpoint.Checkpoints(folder, keep=1)
    assert "counts as one without a validation loss" in capfd.readouterr().err
    assert int(again.restore(abstract()).state.step) == 5
    again.save(at_step(state, 7), None)
    again.wait()
    again.close()
    assert steps_in(folder) == [5, 7]


# Where one array cannot be read, orbax leaves the reading of the others behind, which Python says when it finds them.
leaves_reads_behind = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def files_of(checkpoint_folder):
  return sorted(path for path in checkpoint_folder.rglob("*") if path.is_file() and path.stat().st_size)


@pytest.fixture(scope="module")
def two_steps(state, tmp_path_factory):
  """A folder with the checkpoints of steps 3 and 5."""
  folder = tmp_path_factory.mktemp("two_steps")
  checkpoints = checkpoint.Checkpoints(epath.Path(folder), keep=2)
  for step in (3, 5):
    checkpoints.save(at_step(state, step), None)
    checkpoints.wait()
  checkpoints.close()
  return folder


def flip_a_bit(file):
  content = bytearray(file.read_bytes())
  content[len(content) // 2] ^= 1
  file.write_bytes(content)


@pytest.mark.long
@leaves_reads_behind
@pytest.mark.parametrize("damage", [flip_a_bit, lambda file: file.unlink()], ids=["a bit flipped", "deleted"])
def test_a_damaged_checkpoint_is_never_restored_as_if_it_were_whole(state, two_steps, tmp_path, capfd, damage):
  names = [file.relative_to(two_steps) for file in files_of(two_steps / "checkpoints" / "5")]
  assert len(names) > 10
  older = 0
  for number, name in enumerate(names):
    folder = tmp_path / str(number)
    shutil.copytree(two_steps, folder)
    damage(folder / name)
    checkpoints = checkpoint.Checkpoints(epath.Path(folder), keep=2)
    restored = checkpoints.restore(abstract()).state
    found = int(restored.step)
    jax.tree.map(np.testing.assert_array_equal, restored, at_step(state, found))
    assert ("the checkpoint of step 5 is damaged" in capfd.readouterr().err) == (found == 3), name
    if found == 3:
      older += 1
      assert len(list((folder / "damaged").iterdir())) == 1
      checkpoints.save(at_step(state, 5), None)  # the run gets there again
      checkpoints.wait()
      assert int(checkpoints.restore(abstract()).state.step) == 5
    checkpoints.close()
  assert older >= 4
  gc.collect()  # now, and not in another test


OF_THE_MACHINE = [
  OSError(errno.ESTALE, "Stale file handle"),
  OSError(errno.EIO, "Input/output error"),
  ValueError("NOT_READ: [os_error_code='5' source_locations='x']"),
  ValueError("UNAVAILABLE: the bucket is busy"),
]
MORE_OF_THE_MACHINE = [
  *(errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EBUSY, errno.ETIMEDOUT),
  *(errno.ECONNRESET, errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH),
]
MORE_OF_A_BUCKET = ["DEADLINE_EXCEEDED", "PERMISSION_DENIED", "UNAUTHENTICATED", "ABORTED"]


@pytest.mark.parametrize("of_a_sum", [False, True], ids=["arrays", "sums"])
@pytest.mark.parametrize("error", OF_THE_MACHINE, ids=str)
def test_an_error_of_the_machine_is_not_called_damage(state, two_steps, tmp_path, monkeypatch, error, of_a_sum):
  """Otherwise the run would throw its newest checkpoint away, and make its updates again."""
  shutil.copytree(two_steps, tmp_path / "run")
  checkpoints = checkpoint.Checkpoints(epath.Path(tmp_path / "run"), keep=2)
  with monkeypatch.context() as patch:
    patch.setattr(*((untrusted, "read_bytes") if of_a_sum else (checkpoint.files, "read_item")), raising(error))
    with pytest.raises(RunError, match=r"checkpoints/5 cannot be read now: .*; nothing was changed, so give the same"):
      checkpoints.restore(abstract())
  assert not (tmp_path / "run" / "damaged").exists()
  jax.tree.map(np.testing.assert_array_equal, checkpoints.restore(abstract()).state, at_step(state, 5))
  checkpoints.close()


def test_all_errors_of_a_machine_and_of_a_bucket_are_known(tmp_path):
  for number in MORE_OF_THE_MACHINE:
    with pytest.raises(reading.CannotRead), checkpoint._readable_now(epath.Path(tmp_path)):
      raise OSError(number, "of the machine")
  for status in MORE_OF_A_BUCKET:
    with pytest.raises(reading.CannotRead), checkpoint._readable_now(epath.Path(tmp_path)):
      raise ValueError(f"{status}: x")
  for error in (OSError(errno.ENOENT, "of a file"), ValueError("DATA_LOSS: x")):
    with pytest.raises(type(error)), checkpoint._readable_now(epath.Path(tmp_path)):
      raise error


def test_a_loss_that_cannot_be_read_now_is_not_called_damage(two_steps, tmp_path, monkeypatch):
  shutil.copytree(two_steps, tmp_path / "run")
  with monkeypatch.context() as patch:
    patch.setattr(untrusted, "read_bytes", raising(OSError(errno.EIO, "Input/output error")))
    with pytest.raises(RunError, match=r"checkpoints/3 cannot be read now: .*; nothing was changed, so give the same"):
      checkpoint.Checkpoints(epath.Path(tmp_path / "run"), keep=2)
  assert not (tmp_path / "run" / "damaged").exists()


def raising(error):
  def fail(*_):
    raise error

  return fail


@leaves_reads_behind
def test_when_all_are_damaged_that_is_said(two_steps, tmp_path):
  shutil.copytree(two_steps, tmp_path / "run")
  for step in ("3", "5"):
    shutil.rmtree(tmp_path / "run" / "checkpoints" / step / "params" / "d")
  checkpoints = checkpoint.Checkpoints(epath.Path(tmp_path / "run"), keep=2)
  with pytest.raises(RunError, match=r"every checkpoint in .* is damaged"):
    checkpoints.restore(abstract())
  checkpoints.close()
  assert steps_in(tmp_path / "run") == [3, 5]  # for whoever can still read them
  gc.collect()


def negate(folder, item, name):
  """Every number of an array of a checkpoint with the other sign, where orbax and its own sums see nothing."""
  spec = {
    "driver": "zarr",
    "kvstore": {"driver": "ocdbt", "base": f"file://{folder}/{item}/", "path": f"{name.replace('/', '.')}/"},
  }
  array = tensorstore.open(spec).result()
  array.write(-array.read().result()).result()


def older_sum(x):
  bits = [int(number) for number in np.frombuffer(np.asarray(x).tobytes(), np.uint32)]
  return sum((2 * i + 1) * number for i, number in enumerate(bits)) % 2**32


def params_read(folder):
  return reading.newest_intact(folder, lambda step: restore.read_params(folder, CONFIG, step))


def test_a_negated_matrix_is_damage(state, two_steps, tmp_path, capfd):
  folder = epath.Path(shutil.copytree(two_steps, tmp_path / "run"))
  negate(folder / "checkpoints" / "5", "params", "embedding/table")
  step, params = params_read(folder)
  assert step == 3
  jax.tree.map(np.testing.assert_array_equal, params, state.params)
  assert "step 5 is damaged and not used: params holds other numbers than were saved" in capfd.readouterr().err


@pytest.mark.parametrize(
  ("item", "name"),
  [
    ("params", "embedding/table"),
    ("optimizer", "moments/0/mu/embedding/table"),
    ("average", "embedding/table"),
  ],
)
def test_training_does_not_go_on_from_a_negated_array(tmp_path, capfd, item, name):
  config = dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, ema_decay=0.9))
  state = jax.tree.map(lambda x: x + np.asarray(1, x.dtype), random_state(config, TASK))  # no moment is 0
  folder = epath.Path(tmp_path)
  checkpoints = checkpoint.Checkpoints(folder, keep=2)
  for step in (3, 5):
    checkpoints.save(at_step(state, step), None)
  checkpoints.close()
  negate(folder / "checkpoints" / "5", item, name)
  checkpoints = checkpoint.Checkpoints(folder, keep=2)
  found = checkpoints.restore(abstract_state(config, TASK))
  checkpoints.close()
  jax.tree.map(np.testing.assert_array_equal, jax.device_get(found.state), at_step(state, 3))
  assert f"{item} holds other numbers than were saved" in capfd.readouterr().err
  [aside] = (folder / "damaged").iterdir()
  assert aside.name.startswith("5.")


def test_the_sums_of_older_checkpoints_are_read(state, two_steps, tmp_path, capfd):
  folder = epath.Path(shutil.copytree(two_steps, tmp_path / "run"))
  path = folder / "checkpoints" / "5" / "sums" / "metadata"
  sums = {
    "/".join(key.key for key in place): older_sum(x) for place, x in jax.tree_util.tree_leaves_with_path(state.params)
  }
  assert json.loads(path.read_text())["params"].keys() == sums.keys()
  path.write_text(json.dumps({"params": sums}))
  assert params_read(folder)[0] == 5
  path.write_text(json.dumps({"params": sums | {"embedding/table": 1}}))
  assert params_read(folder)[0] == 3
  assert "step 5 is damaged and not used: params holds other numbers than were saved" in capfd.readouterr().err


@pytest.fixture
def replacing(two_steps, tmp_path):
  """A run with the checkpoint of step 3 alone, and a function that puts one of the next number in its place."""
  folder = epath.Path(shutil.copytree(two_steps, tmp_path / "run"))
  (folder / "checkpoints" / "5").rmtree()

  def replace():
    [step] = steps_in(folder)
    (folder / "checkpoints" / str(step)).rename(folder / "checkpoints" / str(step + 1))
    return ValueError("a file is gone")

  return folder, replace


def test_a_checkpoint_that_is_replaced_while_it_is_read_is_no_damage(replacing, capfd):
  folder, replace = replacing

  def read(step):
    if step < 5:
      raise replace()
    return step

  assert reading.newest_intact(folder, read) == (5, 5)
  assert capfd.readouterr().err == ""


def test_an_older_best_one_is_not_taken_for_one_that_is_replaced(replacing, two_steps, capfd):
  folder, _ = replacing
  shutil.copytree(two_steps / "checkpoints" / "3", folder / "checkpoints" / "1")

  def read(step):
    if step == 3:
      (folder / "checkpoints" / "3").rename(folder / "checkpoints" / "7")
      raise ValueError("a file is gone")
    return step

  assert reading.newest_intact(folder, read) == (7, 7)
  assert capfd.readouterr().err == ""


def test_a_run_that_replaces_its_checkpoints_too_fast_is_not_called_damaged(replacing, monkeypatch, capfd):
  folder, replace = replacing
  monkeypatch.setattr(reading, "_SECONDS_BETWEEN_LOOKS", (0.01,) * 3)

  def read(step):
    raise replace()

  with pytest.raises(RunError, match=r"no checkpoint in .* could be read, as training replaces them before they are: "):
    reading.newest_intact(folder, read)
  assert capfd.readouterr().err == ""


def test_while_somebody_reads_nothing_is_deleted(state, tmp_path):
  folder = epath.Path(tmp_path)
  checkpoints = checkpoint.Checkpoints(folder, keep=1)

  def save(*steps):
    for step in steps:
      checkpoints.save(at_step(state, step), None)
      checkpoints.wait()

  save(1, 2)
  assert steps_in(tmp_path) == [2]
  with locks.reading(folder / "checkpoints"), locks.reading(folder / "checkpoints"):
    save(3, 4)
    assert steps_in(tmp_path) == [2, 3, 4]
  save(5)
  assert steps_in(tmp_path) == [5]
  assert reading.newest_intact(folder, lambda step: (save(6), step)[1]) == (5, 5)
  assert steps_in(tmp_path) == [5, 6]
  checkpoints.close()


@leaves_reads_behind
@pytest.mark.parametrize("reads", [pytest.param(5, id="5"), pytest.param(60, id="60", marks=pytest.mark.slow)])
@pytest.mark.long
def test_a_run_is_read_while_it_saves_all_the_time(state, tmp_path, capfd, reads):
  folder, ended = epath.Path(tmp_path), threading.Event()
  run_folder.begin_run(folder, CONFIG, SentencePieceTokenizer.learn(["a b c " * 7], 265), [])
  checkpoints = checkpoint.Checkpoints(folder, keep=1)
  checkpoints.save(at_step(state, 0), None)
  checkpoints.wait()

  def save() -> None:
    for step in itertools.count(1):
      if ended.is_set():
        return
      checkpoints.save(at_step(state, step), None)
      checkpoints.wait()

  writer = threading.Thread(target=save)
  writer.start()
  try:
    steps = []
    for _ in range(reads):
      _, params, _, step = runs.open(folder).model()
      jax.tree.map(np.testing.assert_array_equal, params, state.params)
      steps.append(step)
  finally:
    ended.set()
    writer.join()
    checkpoints.close()
  assert steps == sorted(steps) and steps[0] < steps[-1]
  assert "damaged" not in capfd.readouterr().err


def test_files_are_replaced_as_a_whole(tmp_path):
  path = tmp_path / "file"
  write_atomically(path, b"one")
  write_atomically(path, b"two")
  assert path.read_text() == "two"
  assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("text", ["", "{", '{"modle": {}}', '{"model": {"d_model": "wide"}}', "[]"])
def test_a_malformed_config_is_one_sentence(tmp_path, text):
  (tmp_path / run_folder.CONFIG).write_text(text)
  with pytest.raises(InputError) as raised:
    runs.open(tmp_path)
  assert "\n" not in str(raised.value)
  assert "config" in str(raised.value)


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("[{", "cannot be read"),
    ("\xff", "cannot be read"),
    ("3", "a list of objects"),
    ("[3]", "a list of objects"),
    ('[{"averaged": 3}]', "averaged"),
  ],
)
def test_a_malformed_provenance_is_one_sentence(tmp_path, text, message):
  (tmp_path / run_folder.CONFIG).write_text(serialization.to_json(CONFIG))
  (tmp_path / run_folder.PROVENANCE).write_bytes(text.encode("latin1"))
  run = runs.open(tmp_path)
  with pytest.raises(InputError, match=f"provenance.json .*{message}"):
    _ = run.provenance


def test_a_run_must_say_with_which_text_it_was_begun(tmp_path):
  (tmp_path / run_folder.CONFIG).write_text(serialization.to_json(CONFIG))
  with pytest.raises(InputError, match="does not say with which text"):
    resume.history_of(runs.open(tmp_path), "a digest")


@pytest.mark.parametrize(
  ("versions", "advice"),
  [
    ({}, r"with: give it the same text \(a file that was compressed or unpacked since counts as another\), or [^(]*$"),
    ({"versions": {"transformer_jax": "0.2"}}, r"with: give it the same text \([^(]*$"),
    (
      {"versions": {"transformer_jax": "0.1"}},
      r"with: give it the same text .* \(transformer_jax 0\.1 began the run, and may have cut the same text into other",
    ),
  ],
)
def test_a_run_goes_on_with_its_text_only(tmp_path, monkeypatch, versions, advice):
  monkeypatch.setattr(resume, "own_version", lambda: "0.2")
  (tmp_path / run_folder.CONFIG).write_text(serialization.to_json(CONFIG))
  (tmp_path / run_folder.PROVENANCE).write_text(json.dumps([{"data": "a digest"} | versions]))
  run = runs.open(tmp_path)
  assert len(resume.history_of(run, "a digest")) == 1
  with pytest.raises(InputError, match=advice):
    resume.history_of(run, "another")


def test_free_keys_may_change_between_two_parts_of_a_run(tmp_path, capfd):
  workdir = epath.Path(tmp_path)
  assert not resume.run_to_go_on_with(workdir, CONFIG)
  (workdir / run_folder.CONFIG).write_text(serialization.to_json(CONFIG))
  (workdir / run_folder.CHECKPOINTS / "3").mkdir(parents=True)
  values = serialization.to_dict(CONFIG)
  values["train"]["steps"] = 7
  values["decode"]["beam_size"] = 2
  values["data"]["validation"] = "elsewhere"
  assert resume.run_to_go_on_with(workdir, serialization.from_dict(values))
  steps, beams = CONFIG.train.steps, CONFIG.decode.beam_size
  assert sorted(capfd.readouterr().err.splitlines()) == [
    f"config.data.validation is now 'elsewhere', before {CONFIG.data.validation!r}",
    f"config.decode.beam_size is now 2, before {beams}",
    f"config.train.steps is now 7, before {steps}",
    "if config.data.validation is another text now, --step best and early stopping compare two texts, maybe wrongly",
  ]
  other_bleu = "--step best and early stopping compare BLEU of two searches or of two kinds now, maybe wrongly"
  values["train"]["best_by"] = "bleu"
  (workdir / run_folder.CONFIG).write_text(json.dumps(values))
  for group, key, value, warned in (
    ("decode", "beam_size", 3, 1),
    ("evaluate", "lowercase", True, 1),
    ("evaluate", "tokenize", "none", 1),
    ("evaluate", "sentences", 5, 1),
    ("evaluate", "every", 5, 0),
  ):
    changed = values | {group: values[group] | {key: value}}
    resume.run_to_go_on_with(workdir, serialization.from_dict(changed))
    assert capfd.readouterr().err.splitlines().count(other_bleu) == warned
  values["train"]["seed"] = 1
  with pytest.raises(InputError, match=r"config\.train\.seed is 1, but the run in .* was begun with 0: set it back"):
    resume.run_to_go_on_with(workdir, serialization.from_dict(values))


@pytest.mark.parametrize(
  ("changes", "told"),
  [
    ({"seed": 7}, r": set it back"),
    ({"seed": 7, "clip_norm": 0.5}, r"; config\.train\.\w+ differs too: set them back"),
    ({"seed": 7, "clip_norm": 0.5, "beta2": 0.5}, r"; config\.train\.\w+, config\.train\.\w+ differ too: set them"),
    (
      {"seed": 7, "clip_norm": 0.5, "beta1": 0.5, "beta2": 0.5, "epsilon": 0.5, "warmup_steps": 3, "ema_decay": 0.5},
      r"; (config\.train\.\w+, ){5}\.\.\. differ too: set them back",
    ),
  ],
)
def test_all_keys_that_may_not_change_are_named(tmp_path, changes, told):
  """And before too few steps are, which may change."""
  workdir, values = epath.Path(tmp_path), serialization.to_dict(CONFIG)
  (workdir / run_folder.CONFIG).write_text(serialization.to_json(CONFIG))
  (workdir / run_folder.CHECKPOINTS / "3").mkdir(parents=True)
  values["train"] |= {"steps": 2, **changes}
  with pytest.raises(InputError, match=rf"^config\.train\.\w+ is \S+, but the run in \S+ was begun with [^;:]+{told}"):
    resume.run_to_go_on_with(workdir, serialization.from_dict(values))


CHANGES = [
  *(("train", key) for key in ("batch_tokens", "warmup_steps", "seed", "max_skipped", "keep")),
  *(("train", key) for key in ("label_smoothing", "clip_norm", "r_drop", "ema_decay", "beta2", "epsilon")),
  *(("data", key) for key in ("row_length", "max_length", "source_language")),
  *(("model", key) for key in ("dropout", "hidden_size")),
]


@pytest.mark.parametrize(("part", "key"), CHANGES)
def test_a_key_that_changes_an_update_may_not_change_within_a_run(tmp_path, part, key):
  workdir, values = epath.Path(tmp_path), serialization.to_dict(CONFIG)
  (workdir / run_folder.CONFIG).write_text(serialization.to_json(CONFIG))
  (workdir / run_folder.CHECKPOINTS / "3").mkdir(parents=True)
  before = values[part][key]
  values[part][key] = f"{before}x" if isinstance(before, str) else before + 3 if isinstance(before, int) else 0.25
  config = serialization.from_dict(values)
  if key in ("max_skipped", "keep"):  # which change none
    assert resume.run_to_go_on_with(workdir, config)
    return
  with pytest.raises(InputError, match=rf"config\.{part}\.{key} is .*, but the run in .* was begun with "):
    resume.run_to_go_on_with(workdir, config)


def test_no_other_key_of_an_update_may_change():
  """The keys that change where text and rows are, and how long, how safely and how fast a run computes."""
  files = {f"data.{key}" for key in ("train", "validation", "test", "cache_dir", "data_dir", "tokenizer")}
  course = {f"train.{key}" for key in ("steps", "log_every", "save_every", "keep", "max_skipped", "patience")}
  others = {"train.accumulation", "decode", "evaluate", "debug"}
  assert files | course | others == resume._FREE


def test_the_steps_of_a_schedule_that_ends_with_them_may_not_change(tmp_path):
  workdir, values = epath.Path(tmp_path), serialization.to_dict(CONFIG)
  values["train"] |= {"schedule": "cosine", "steps": 5000}
  (workdir / run_folder.CONFIG).write_text(serialization.to_json(serialization.from_dict(values)))
  (workdir / run_folder.CHECKPOINTS / "3").mkdir(parents=True)
  assert resume.run_to_go_on_with(workdir, serialization.from_dict(values))
  values["train"]["steps"] = 5001
  with pytest.raises(InputError, match=r"config\.train\.steps is 5001, .* begun with 5000, .*schedule=cosine depends"):
    resume.run_to_go_on_with(workdir, serialization.from_dict(values))


def test_another_optimizer_and_the_loop_s_numbers_are_restored(tmp_path):
  recipe = {"optimizer": Optimizer.ADAMW, "weight_decay": 0.1, "clip_norm": 1.0, "schedule": Schedule.LINEAR}
  config = dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, **recipe))
  state = random_state(config, TASK)
  state = jax.tree.map(lambda leaf: leaf + np.asarray(1, leaf.dtype), state)  # no moment is 0
  checkpoints = checkpoint.Checkpoints(epath.Path(tmp_path), keep=2)
  numbers = {"place": {"part": 7, "first_row": 2**24 + 1}, "stopping": {"best": np.inf, "best_step": 0, "waited": 2}}
  checkpoints.save(state, {LOSS: 3.0, SCORE: 41.5}, numbers)
  checkpoints.save(at_step(state, 2), {LOSS: 2.0, SCORE: 40.5}, numbers)  # a lower loss, but a lower score
  checkpoints.close()
  assert reading.finished(epath.Path(tmp_path)).best == 1
  found = checkpoint.Checkpoints(epath.Path(tmp_path), keep=2).restore(abstract_state(config, TASK))
  assert found is not None and found.log == numbers
  jax.tree.map(np.testing.assert_array_equal, jax.device_get(found.state), at_step(state, 2))


def test_a_log_that_is_not_a_few_numbers_is_not_read(tmp_path):
  """A folder of some kB could ask for any amount of memory, also for a single number: its part may have any size."""
  workdir = epath.Path(tmp_path)
  with ocp.CheckpointManager(workdir / run_folder.CHECKPOINTS) as manager:
    for step, loss in enumerate([1.5, np.zeros(1 << 20), np.zeros(1)]):
      log = {"loss": loss, "tokens": 3.0}
      manager.save(step, args=ocp.args.Composite(log=ocp.args.StandardSave(log)))
  assert checkpoint_files.read_log(workdir, 0) == {"loss": 1.5, "tokens": 3.0}
  for step in (1, 2):
    with pytest.raises(ValueError, match="log has something else than the numbers of a line of the log"):
      checkpoint_files.read_log(workdir, step)


def test_full_memory_is_not_called_damage(state, two_steps, tmp_path, monkeypatch):
  shutil.copytree(two_steps, tmp_path / "run")
  checkpoints = checkpoint.Checkpoints(epath.Path(tmp_path / "run"), keep=2)
  with monkeypatch.context() as patch, pytest.raises(MemoryError):
    patch.setattr(checkpoint.files, "read_item", raising(MemoryError()))
    checkpoints.restore(abstract())
  assert not (tmp_path / "run" / "damaged").exists()
  jax.tree.map(np.testing.assert_array_equal, checkpoints.restore(abstract()).state, at_step(state, 5))
  checkpoints.close()


def test_a_step_before_the_last_one_is_not_left_out_in_silence(tmp_path):
  writer = checkpoint_files.Writer(epath.Path(tmp_path), keep=2)
  arrays = {"params": {"a": np.ones(3, np.float32)}}
  writer.save(5, arrays, None, None)
  writer.wait()
  with pytest.raises(RunError, match="the checkpoint of step 3 was not written, as a later one exists"):
    writer.save(3, arrays, None, None)
  writer.close()


def test_a_step_that_is_saved_is_not_saved_again(state, two_steps, tmp_path):
  """As where rows cannot be read after it: the error that is told must be theirs."""
  folder = epath.Path(shutil.copytree(two_steps, tmp_path / "run"))
  checkpoints = checkpoint.Checkpoints(folder, keep=2)
  checkpoints.save(at_step(state, 5), None, planned=False)
  checkpoints.close()
  assert steps_in(folder) == [3, 5] and checkpoint_files.read_previous(folder, 5).planned


def test_a_checkpoint_that_is_deleted_while_its_time_is_asked_is_no_damage(two_steps, tmp_path, monkeypatch):
  folder = epath.Path(shutil.copytree(two_steps, tmp_path / "run"))

  def deleted():
    monkeypatch.undo()
    shutil.rmtree(folder / "checkpoints" / "3")
    raise FileNotFoundError("checkpoints/3")

  monkeypatch.setattr(ocp.path.step, "standard_name_format", deleted)
  assert list(checkpoint_files.finish_times(folder)) == [5]


def test_a_damaged_record_of_the_checkpoint_before_is_one_sentence_and_ends_no_run(two_steps, tmp_path):
  """The checkpoint counts as planned."""
  folder = epath.Path(shutil.copytree(two_steps, tmp_path / "run"))
  for content in ("", "[]", "{}", '{"step": "3"}'):
    (folder / "checkpoints" / "5" / "previous" / "metadata").write_text(content)
    with pytest.raises(InputError, match=r"previous/metadata (cannot be read|does not say which checkpoint was saved)"):
      checkpoint_files.read_previous(folder, 5)
    assert checkpoint_files.is_planned(folder, 5)


def test_a_checkpoint_that_is_planned_when_it_is_made_again_is_kept_as_such(tmp_path):
  """A damaged one that a signal had asked for is moved away, and the run comes to its step again."""
  arrays = {"params": {"a": np.ones(3, np.float32)}}
  writer = checkpoint_files.Writer(epath.Path(tmp_path), keep=1)
  writer.save(3, arrays, None, None, planned=False)
  writer.wait()
  shutil.rmtree(tmp_path / "checkpoints" / "3")
  writer.look_again()
  for step, planned in ((3, True), (5, False)):
    writer.save(step, arrays, None, None, planned=planned)
    writer.wait()
  writer.close()
  assert steps_in(tmp_path) == [3, 5]


def test_a_step_that_was_said_is_put_right_if_another_is_restored(state, tmp_path, capfd):
  """Training may save between the two looks of a command."""
  folder = epath.Path(tmp_path)
  run_folder.begin_run(folder, CONFIG, SentencePieceTokenizer.learn(["a b c " * 7], 265), [])
  checkpoints = checkpoint.Checkpoints(folder, keep=2)
  for step in (3, 5):
    checkpoints.save(at_step(state, step), None)
    checkpoints.wait()
  checkpoints.close()
  run = runs.open(folder)
  for said in (None, 5, 3):
    run.said = said
    assert run.model().step == 5
  assert capfd.readouterr().err.splitlines() == ["the checkpoint of step 5 is used in its place"]
