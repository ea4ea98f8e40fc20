"""How a run ends before its last step: by a signal, a fault, early stopping or a loss that is no number."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from etils import epath

from benchmarks.curves import read_points
from tests.example_run import TIMING, metrics_of
from tests.tiny_run import assert_same_bits, state_of, tiny
from transformer_jax import runs
from transformer_jax.__main__ import main
from transformer_jax.config import BestBy, Config, EvaluateConfig, TrainConfig
from transformer_jax.data import pipeline
from transformer_jax.runs import checkpoint_files, run_folder
from transformer_jax.runtime import hosts
from transformer_jax.runtime.errors import InputError, RunError
from transformer_jax.runtime.process import ended_at_once_by_ctrl_c
from transformer_jax.tasks.evaluator import Evaluator
from transformer_jax.tasks.translation_validation import TranslationValidation
from transformer_jax.trainer import loop


def test_only_validations_that_any_run_makes_count_for_early_stopping():
  """Not that of the last step, which a run with more steps does not make."""
  trainer = object.__new__(loop.Trainer)
  trainer._config, trainer._stopping = tiny("text", patience=3), loop.EarlyStopping(3)
  assert trainer._config.evaluate.every == 3
  found = [trainer._is_best(step, {checkpoint_files.LOSS: loss}) for step, loss in ((3, 5.0), (4, 1.0), (6, 7.0))]
  assert found == [True, False, False]
  assert trainer._stopping.numbers() == {"best": 5.0, "best_step": 3, "waited": 1}


LOSSES = {1: 5.0, 2: 3.0, 3: float("nan"), 4: 3.5, 5: 2.0, 6: 2.5, 7: 2.2, 8: 9.0}
OF_VALIDATION = {"perplexity": 2.0, "accuracy": 0.5, "chrf": 1.0}


@pytest.mark.long
@pytest.mark.parametrize("best_by", BestBy)
def test_a_run_stops_early_and_goes_on_with_more_patience(prefix, tmp_path, monkeypatch, capfd, best_by):
  lines = [{"loss": loss, "bleu": 10 - loss, **OF_VALIDATION} for loss in LOSSES.values()]
  if best_by is BestBy.BLEU:  # then the loss says nothing
    lines = [{**line, "loss": float(step)} for step, line in enumerate(lines)]
  made = []

  def measure(self, params):
    made.append(lines[len(made)])
    return made[-1]

  monkeypatch.setattr(TranslationValidation, "measure", measure)
  config = tiny(prefix, steps=8, save_every=0, keep=1, patience=2, best_by=best_by, log_every=50)
  config.evaluate.every = 1
  loop.train(config, epath.Path(tmp_path / "run"))
  said = capfd.readouterr().err
  why = f"stopped early after step 4, as 2 validations after step 2 had no better {best_by}; --step best chooses"
  assert len(made) == 4 and why in said and why in (tmp_path / "run" / "train.log").read_text()
  assert said.endswith(f"try it:\n  transformer-jax translate --workdir {tmp_path / 'run'} --step best < FILE\n")
  [line] = [line for line in metrics_of(tmp_path / "run") if line["split"] == "train"]  # though log_every is larger
  assert (line["step"], line["updates"]) == (4, 4)
  loop.train(config, epath.Path(tmp_path / "run"))
  again = capfd.readouterr().err
  assert len(made) == 4 and "the run is finished: it stopped early after step 4" in again and "resuming" not in again
  found = runs.open(tmp_path / "run").checkpoints
  assert (found.best, found.last) == (2, 4)
  config.train.patience = 3
  loop.train(config, epath.Path(tmp_path / "run"))
  at_the_end = capfd.readouterr().err
  assert len(made) == 8 and "stopped early after step 8" in at_the_end
  assert "a higher config.train.patience goes on" in said and "config.train.patience goes on" not in at_the_end
  assert runs.open(tmp_path / "run").checkpoints.best == 5
  assert runs.open(tmp_path / "run").model(step="best").step == 5


@pytest.mark.long
def test_a_run_without_a_finite_validation_fails_when_it_stops_early(prefix, tmp_path, monkeypatch):
  line = {"loss": float("nan"), "bleu": 0.0, **OF_VALIDATION}
  monkeypatch.setattr(TranslationValidation, "measure", lambda self, params: line)
  config = tiny(prefix, steps=8, patience=2)
  config.evaluate.every = 1
  why = (
    r"stopped early after step 2, as none of 2 validations gave a finite loss, .*: use another --workdir with a lower"
  )
  for _ in range(2):
    with pytest.raises(RunError, match=why):
      loop.train(config, epath.Path(tmp_path / "run"))
  diverging = tiny(prefix, steps=60, patience=5, log_every=50, warmup_steps=1, max_skipped=1)
  diverging.evaluate.every, diverging.train.peak_learning_rate = 1, 1e38
  with pytest.raises(RunError, match=r"not finite in the updates of steps 2 to 3, which changed nothing"):
    loop.train(diverging, epath.Path(tmp_path / "diverging"))


@pytest.mark.long
def test_a_checkpoint_that_a_signal_asks_for_is_never_the_best(prefix, tmp_path, monkeypatch):
  """An uninterrupted run has none there."""
  config = tiny(prefix, steps=6, save_every=100, keep=1)
  losses = {3: 1.0, 6: 2.0}
  measure = TranslationValidation.measure
  made = []

  def interrupted(self, params):
    if not made:
      os.kill(os.getpid(), signal.SIGTERM)
    made.append(1)
    return measure(self, params) | {"loss": losses[3 * len(made)]}

  monkeypatch.setattr(TranslationValidation, "measure", interrupted)
  with pytest.raises(SystemExit, match="143"):
    loop.train(config, epath.Path(tmp_path / "run"))
  found = runs.open(tmp_path / "run").checkpoints
  assert (found.best, found.last) == (None, 3)
  assert checkpoint_files.read_previous(epath.Path(tmp_path / "run"), 3) == (None, False)
  loop.train(config, epath.Path(tmp_path / "run"))
  assert len(made) == 2 and runs.open(tmp_path / "run").checkpoints.best == 6
  assert checkpoint_files.read_previous(epath.Path(tmp_path / "run"), 6) == (None, True)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_saves(prefix, tmp_path, monkeypatch, number):
  update = loop.Trainer._update

  def interrupted(self, step):
    update(self, step)
    if step == 3:
      os.kill(os.getpid(), number)

  before = signal.getsignal(number)
  monkeypatch.setattr(loop.Trainer, "_update", interrupted)
  with pytest.raises(SystemExit) as stopped:
    loop.train(tiny(prefix), epath.Path(tmp_path / "run"))
  assert stopped.value.code == 128 + number
  assert signal.getsignal(number) is before
  assert int(state_of(tmp_path / "run", tiny(prefix)).step) == 3
  assert not (tmp_path / "run" / "train.log").exists()


class Killed(BaseException):
  """Ends the loop as if the process were gone."""


@pytest.mark.long
def test_however_a_run_is_stopped_its_log_is_that_of_an_unbroken_one(prefix, tmp_path, monkeypatch):
  """Lines of the log, checkpoints and validations coincide rarely, and stops with none of them."""
  config = tiny(prefix, steps=13, log_every=3, save_every=4)
  config.evaluate.every = 5
  loop.train(config, epath.Path(tmp_path / "whole"))
  update, measure = loop.Trainer._update, TranslationValidation.measure
  stops = {6: "kill", 7: "SIGTERM", 10: "SIGINT in validation"}

  def stopped_after(self, step):
    update(self, step)
    if stops.get(step) == "kill":
      self._close()
      del stops[step]
      raise Killed
    if stops.get(step) == "SIGTERM":
      del stops[step]
      signal.raise_signal(signal.SIGTERM)

  def stopped_in_validation(self, params):
    if list(stops) == [10]:
      del stops[10]
      signal.raise_signal(signal.SIGINT)
    return measure(self, params)

  monkeypatch.setattr(loop.Trainer, "_update", stopped_after)
  monkeypatch.setattr(TranslationValidation, "measure", stopped_in_validation)
  for end, status, saved in ((Killed, None, 4), (SystemExit, 143, 7), (SystemExit, 130, 10)):
    with pytest.raises(end) as raised:
      loop.train(config, epath.Path(tmp_path / "parts"))
    assert getattr(raised.value, "code", None) == status
    assert max(checkpoint_files.finish_times(epath.Path(tmp_path / "parts"))) == saved
  loop.train(config, epath.Path(tmp_path / "parts"))
  assert not stops
  lines = metrics_of(tmp_path / "whole")
  assert [(line["step"], line["updates"]) for line in lines if line["split"] == "train"] == [
    *((step, 3) for step in (3, 6, 9, 12)),
    (13, 1),
  ]
  assert [line["step"] for line in lines if line["split"] == "validation"] == [5, 10, 13]
  assert metrics_of(tmp_path / "parts") == lines
  assert_same_bits(state_of(tmp_path / "parts", config), state_of(tmp_path / "whole", config))
  whole, parts = (read_points(tmp_path / name / "tensorboard") for name in ("whole", "parts"))
  assert [step for step, _ in whole["train/loss"]] == [3, 6, 9, 12, 13]
  assert all(parts[name] == whole[name] for name in whole if name.split("/")[1] not in TIMING)


@pytest.mark.slow
def test_faults_at_any_moment_lose_nothing(tmp_path):
  """In processes of their own, which are really killed; the long form is the program's own default."""
  program = Path(__file__).parents[2] / "benchmarks" / "kills.py"
  command = [sys.executable, str(program), "--kills=3", "--signals=8", f"--json={tmp_path / 'kills.json'}"]
  subprocess.run(command, check=True)
  faults = json.loads((tmp_path / "kills.json").read_text())["faults"]
  assert len(faults) == 11
  assert len({fault["step"] for fault in faults}) > 3  # the run went on between them


def packed_rows(config):
  tokenizer = pipeline.learn_tokenizer(config.data, config.model.vocab_size)
  return pipeline.packed_rows(config.data, config.data.train, tokenizer)


@pytest.mark.long
def test_a_loss_that_is_no_number_ends_the_run(prefix, tmp_path):
  config = tiny(prefix, peak_learning_rate=1e38, steps=40, max_skipped=3)
  config = dataclasses.replace(config, evaluate=EvaluateConfig(every=0))
  message = r"not finite in the updates of steps 2 to 6, .* the batch of step 2 has rows"
  with pytest.raises(RunError, match=message) as error:
    loop.train(config, epath.Path(tmp_path))
  rows = loop.Batches(packed_rows(config), 8, config.train.seed).rows_of(1)
  assert f"has rows {', '.join(map(str, rows))} of" in str(error.value)
  assert "Checkpoints from step 1 on have the parameters that gave this, " in str(error.value)
  state = state_of(tmp_path, config)
  assert all(np.isfinite(x).all() for x in jax.tree.leaves(state))
  lines = metrics_of(tmp_path)
  assert [(line["step"], line["updates"], line["skipped"]) for line in lines] == [(2, 2, 1), (4, 2, 2), (6, 2, 2)]
  assert ["loss" in line for line in lines] == [True, False, False]


@pytest.mark.long
def test_a_validation_looks_for_skipped_updates(prefix, tmp_path):
  """A line of the log may be far away."""
  config = tiny(prefix, peak_learning_rate=1e38, steps=60, log_every=50, warmup_steps=1, max_skipped=2)
  with pytest.raises(RunError, match=r"not finite in the updates of steps 2 to 6, which changed nothing"):
    loop.train(config, epath.Path(tmp_path))  # at the second validation


@pytest.mark.long
@pytest.mark.parametrize("best_by", BestBy)
def test_a_validation_that_is_no_number_is_not_the_best_and_ends_nothing(prefix, tmp_path, monkeypatch, best_by):
  monkeypatch.setattr(Evaluator, "means", lambda self, params: {"loss": float("nan"), "perplexity": float("nan")})
  config = tiny(prefix, steps=8, patience=2, best_by=best_by)
  config.evaluate.every, config.evaluate.sentences = 1, 2
  with pytest.raises(RunError, match="stopped early after step 2, as none of 2 validations gave a finite loss"):
    loop.train(config, epath.Path(tmp_path))
  assert not any("bleu" in line for line in metrics_of(tmp_path))


@pytest.mark.long
def test_a_run_that_diverges_before_its_first_checkpoint_has_none_that_is_good(prefix, tmp_path):
  config = tiny(prefix, peak_learning_rate=1e38, steps=40, max_skipped=3, save_every=0)
  config = dataclasses.replace(config, evaluate=EvaluateConfig(every=0))
  with pytest.raises(RunError, match=r"The run has no checkpoint yet: give the command again with a lower config"):
    loop.train(config, epath.Path(tmp_path))
  loop.train(dataclasses.replace(config, train=TrainConfig(steps=1, batch_tokens=128)), epath.Path(tmp_path))


@pytest.mark.long
def test_a_validation_that_fails_loses_no_update(prefix, tmp_path, monkeypatch):
  def fails(*arguments):
    raise InputError("as it happens")

  monkeypatch.setattr(TranslationValidation, "measure", fails)
  with pytest.raises(InputError, match="as it happens"):
    loop.train(tiny(prefix), epath.Path(tmp_path))
  assert run_folder.checkpoint_names(epath.Path(tmp_path)) == {"2", "3"}  # 3 is that of the validation
  assert int(state_of(tmp_path, tiny(prefix)).step) == 3
  assert not list((tmp_path / "checkpoints").glob("*tmp*"))


@pytest.mark.long
@pytest.mark.parametrize("place", ["has", "__getitem__"])
def test_rows_that_cannot_be_had_end_a_run_without_losing_its_updates(prefix, tmp_path, monkeypatch, place):
  """What was made before is saved, and the run goes on from there as if it had never been stopped."""
  config = tiny(prefix, save_every=100)
  config.data.validation = ""
  get = getattr(loop.Batches, place)

  def fails(self, step):
    if step == 5:
      raise InputError("cannot read it")
    return get(self, step)

  with monkeypatch.context() as patched:
    patched.setattr(loop.Batches, place, fails)
    with pytest.raises(InputError, match="cannot read it"):
      loop.train(config, tmp_path / "run")
  run = epath.Path(tmp_path / "run")
  assert run_folder.checkpoint_names(run) == {"5"} and not checkpoint_files.read_previous(run, 5).planned
  loop.train(config, tmp_path / "run")
  loop.train(config, tmp_path / "whole")
  assert_same_bits(state_of(tmp_path / "run", config), state_of(tmp_path / "whole", config))
  assert metrics_of(tmp_path / "run") == metrics_of(tmp_path / "whole")


@pytest.mark.parametrize("place", ["has", "__getitem__"])
def test_the_first_rows_that_cannot_be_had_leave_no_checkpoint(prefix, tmp_path, monkeypatch, place):
  """It would bind the folder to a text that cannot be read."""

  def fails(self, step):
    raise InputError("cannot read it")

  config = tiny(prefix)
  config.data.validation = ""
  monkeypatch.setattr(loop, "update_on_devices", lambda config, task: lambda state, batch: pytest.fail("an update"))
  monkeypatch.setattr(loop.Batches, place, fails)
  with pytest.raises(InputError, match="cannot read it"):
    loop.train(config, tmp_path / "run")
  assert run_folder.checkpoint_names(epath.Path(tmp_path / "run")) == set()


def test_exhausted_memory_is_one_sentence(monkeypatch, tmp_path, capfd):
  def exhausted(config, folder, *, accept_edits):
    raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.")

  monkeypatch.setattr(loop, "train", exhausted)
  assert main(["train", "--config=numbers", f"--workdir={tmp_path / 'run'}"]) == 1
  line = capfd.readouterr().err.splitlines()[-1]
  assert line.startswith("transformer-jax: error: memory is exhausted: raise config.train.accumulation")


@pytest.mark.long
def test_debug_says_where_it_comes_from(prefix, tmp_path):
  config = dataclasses.replace(tiny(prefix, peak_learning_rate=1e38, steps=40), debug=True)
  with pytest.raises(FloatingPointError, match="nan"):
    loop.train(config, epath.Path(tmp_path))
  assert not (tmp_path / "metrics.jsonl").exists()  # at once, before the first line of the log
  assert not jax.config.jax_debug_nans  # which the caller has not asked for


@pytest.mark.long
def test_debug_says_where_a_validation_loss_that_is_no_number_comes_from(prefix, tmp_path, monkeypatch):
  monkeypatch.setattr(Evaluator, "means", lambda self, params: {"loss": float(jnp.log(jnp.float32(-1)))})
  config = dataclasses.replace(tiny(prefix, steps=3), debug=True)
  with pytest.raises(FloatingPointError, match="nan"):
    loop.train(config, epath.Path(tmp_path))


def test_an_ignored_ctrl_c_stays_ignored():
  """A shell starts programs in the background so: Ctrl-C is meant for the one in the foreground."""
  before = signal.signal(signal.SIGINT, signal.SIG_IGN)
  try:
    with ended_at_once_by_ctrl_c(), loop._signals() as received:
      signal.raise_signal(signal.SIGINT)
      assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert not received and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
  finally:
    signal.signal(signal.SIGINT, before)


@pytest.mark.long
@pytest.mark.parametrize("updates", [0, 3])
def test_a_signal_ends_the_wait_for_rows(prefix, tmp_path, monkeypatch, updates):
  """What was made before is saved, and the run goes on from there as if it had never been stopped."""
  config = tiny(prefix, save_every=100)
  config.data.bpe_dropout, config.data.validation = 0.2, ""
  has, wait = loop.BatchesPackedAhead.has, loop.BatchesPackedAhead.wait

  def interrupted(self, step, is_stopped):
    if step == updates:
      os.kill(os.getpid(), signal.SIGTERM)
      return wait(SimpleNamespace(has=lambda step: False, _next=lambda stopped: None), step, is_stopped)
    return wait(self, step, is_stopped)

  with monkeypatch.context() as patched:
    patched.setattr(loop.BatchesPackedAhead, "has", lambda self, step: step != updates and has(self, step))
    patched.setattr(loop.BatchesPackedAhead, "wait", interrupted)
    with pytest.raises(SystemExit) as stopped:
      loop.train(config, tmp_path / "run")
  assert stopped.value.code == 143
  assert run_folder.checkpoint_names(epath.Path(tmp_path / "run")) == ({str(updates)} if updates else set())
  assert not updates or not checkpoint_files.read_previous(epath.Path(tmp_path / "run"), updates).planned
  loop.train(config, tmp_path / "run")
  loop.train(config, tmp_path / "whole")
  assert_same_bits(state_of(tmp_path / "run", config), state_of(tmp_path / "whole", config))
  assert metrics_of(tmp_path / "run") == metrics_of(tmp_path / "whole")


@pytest.mark.parametrize(
  ("mine", "others", "expected"),
  [
    ([True], [[True, 0]], 0),
    ([False, False, True], [[True, 0]] * 3, 0),
    ([True] * 3, [[False, 0], [False, 0], [True, 0]], 0),
    ([True], [[True, 15]], 0),  # the signal is answered after the update, as always
    ([True] * 2, [[False, 0], [False, 15]], 15),
    ([False], [[False, 2]], 2),
  ],
)
def test_hosts_that_wait_for_rows_tell_each_other_of_a_signal(monkeypatch, mine, others, expected):
  batches, ready, said = loop.BatchesPackedAhead.__new__(loop.BatchesPackedAhead), iter(mine), iter(others)
  monkeypatch.setattr(batches, "has", lambda step: False)
  monkeypatch.setattr(batches, "wait", lambda step, is_stopped: next(ready))
  monkeypatch.setattr(hosts, "gather", lambda text: [text, json.dumps(next(said))])
  assert loop._signal_before_rows(batches, 7, []) == expected
  assert next(said, None) is None


def test_the_other_hosts_wait_until_the_main_host_has_written(monkeypatch):
  """Launchers end all processes with the first one."""
  done = []
  trainer = object.__new__(loop.Trainer)
  trainer._checkpoints = SimpleNamespace(wait=lambda: done.append("written"), close=lambda: done.append("closed"))
  trainer._metrics = SimpleNamespace(close=lambda: None)
  monkeypatch.setattr(hosts, "barrier", lambda: done.append("met"))
  trainer._close()
  assert done == ["written", "closed", "met"]


def test_a_signal_while_the_last_checkpoint_is_saved_counts():
  trainer = object.__new__(loop.Trainer)
  trainer._config, trainer._stopping = Config(train=TrainConfig(steps=2)), loop.EarlyStopping(0)
  trainer._state, trainer._updates = SimpleNamespace(step=2), 0
  trainer._close = lambda: signal.raise_signal(signal.SIGTERM)
  trainer._report = lambda: pytest.fail("the test text is measured")
  with pytest.raises(SystemExit, match="143"):
    trainer.run()


@pytest.mark.parametrize(("step", "saves"), [(5, [(5, None, True)]), (7, [(7, None, False)]), (0, [])])
def test_what_an_error_saves_is_planned_where_a_checkpoint_was_due(step, saves):
  """An unbroken run has that one, so `average` counts it."""
  saved, trainer = [], object.__new__(loop.Trainer)
  trainer._config = Config(train=TrainConfig(save_every=5))
  trainer._save = lambda step, validated, *, planned: saved.append((step, validated, planned))
  with pytest.raises(InputError, match="as it happens"), trainer._saved_on_error(step):
    raise InputError("as it happens")
  assert saved == saves


def test_what_another_host_ended_is_made_again(monkeypatch):
  """A validation above all: nothing is saved after it, so the restart goes on from the checkpoint before."""
  saved, trainer = [], object.__new__(loop.Trainer)
  trainer._config = Config(train=TrainConfig(save_every=5))
  trainer._save = lambda step, validated, *, planned: saved.append(step)
  for count, expected in ((2, []), (1, [5])):
    monkeypatch.setattr(jax, "process_count", lambda count=count: count)
    with pytest.raises(ValueError, match="UNKNOWN"), trainer._saved_on_error(5):
      raise ValueError("UNKNOWN: Gloo all-reduce failed: Connection closed by peer")
    assert saved == expected
