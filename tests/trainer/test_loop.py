"""The loop: what a run leaves behind, and that a run in parts equals a run in one."""

import contextlib
import dataclasses
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import jax
import numpy as np
import pytest
from etils import epath

from benchmarks.curves import read_points
from tests.example_run import TIMING, metrics_of, write_corpus
from tests.tiny_run import assert_same_bits, state_of, tiny
from transformer_jax import runs
from transformer_jax.__main__ import main
from transformer_jax.analysis import requirements
from transformer_jax.config import (
  BestBy,
  Config,
  Corpus,
  DataConfig,
  Decay,
  EvaluateConfig,
  Schedule,
  TrainConfig,
)
from transformer_jax.data import numbers, pipeline
from transformer_jax.data.batches import Batches, HostBatches
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.row_cache import PackedRows
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.model.config import Dtype, ModelConfig
from transformer_jax.recurrent.config import SequenceToSequenceConfig
from transformer_jax.runs import checkpoint, checkpoint_files, run_folder
from transformer_jax.runtime import devices, hosts
from transformer_jax.runtime.errors import InputError, RunError
from transformer_jax.runtime.process import ended_at_once_by_ctrl_c
from transformer_jax.runtime.sizes import gigabytes
from transformer_jax.tasks.evaluator import Evaluator
from transformer_jax.tasks.translation import TASK
from transformer_jax.tasks.translation_validation import TranslationValidation
from transformer_jax.trainer import checks, loop
from transformer_jax.trainer.metrics import MetricsAccumulator, MetricsLog
from transformer_jax.trainer.training_text import TrainingText
from transformer_jax.training.initialization import init_params
from transformer_jax.training.step import TrainState, abstract_state, init_state
from transformer_jax.training.sums import Sums


class Whole(NamedTuple):
  """A run of six steps that nothing interrupted."""

  folder: Path  # the run is in `folder / "runs" / "tiny"`, its text is "text" there
  config: Config
  said: tuple[str, str]  # on stdout and stderr


@pytest.fixture(scope="module")
def wholes():
  return {}


@pytest.fixture
def whole(request, wholes, tmp_path_factory, monkeypatch, capfd):
  """With this decay of the moving average; each is trained once."""
  ema_decay = getattr(request, "param", 0.0)
  folder = wholes[ema_decay].folder if ema_decay in wholes else tmp_path_factory.mktemp("whole")
  monkeypatch.chdir(folder)
  if ema_decay not in wholes:
    write_corpus(folder)
    config = tiny("text", ema_decay=ema_decay)
    config.decode.max_source_length = 32
    capfd.readouterr()
    loop.train(config, epath.Path(folder / "runs" / "tiny"))
    wholes[ema_decay] = Whole(folder, config, capfd.readouterr())
  return wholes[ema_decay]


@pytest.mark.parametrize("whole", [0.0, pytest.param(0.9, marks=pytest.mark.long)], indirect=True)
def test_a_run_in_parts_equals_a_run_in_one(whole, tmp_path, capfd):
  config, parts, whole = whole.config, tmp_path / "parts", whole.folder / "runs" / "tiny"
  loop.train(dataclasses.replace(config, train=dataclasses.replace(config.train, steps=4)), epath.Path(parts))
  loop.train(config, epath.Path(parts))
  assert "resuming after step 4" in capfd.readouterr().err
  expected = state_of(whole, config)
  assert int(expected.step) == 6
  assert_same_bits(state_of(parts, config), expected)
  train = [line for line in metrics_of(whole) if line["split"] == "train"]
  assert [line["step"] for line in train] == [2, 4, 6]
  assert [line for line in metrics_of(parts) if line["split"] == "train"] == train
  validation = [line for line in metrics_of(whole) if line["split"] == "validation"]
  assert [line["step"] for line in validation] == [3, 6]
  assert {"loss", "perplexity", "bleu", "bleu_signature"} <= validation[0].keys()
  sources, references = ((Path(f"text.{language}").read_text().split("\n")[:2]) for language in ("en", "de"))
  for line in validation:  # two sentences are translated
    assert [sample["source"] for sample in line["samples"]] == sources
    assert [sample["reference"] for sample in line["samples"]] == references
  assert [line for line in metrics_of(parts) if line["split"] == "validation"][-1] == validation[-1]
  packing = runs.open(whole).provenance[0]["packing"]
  assert PackingReport(**packing) == TASK.packed_rows(config, "text", runs.open(whole).tokenizer).report


def test_a_change_of_the_machine_is_reported(capfd):
  loop._report_differences([], {"machine": {"cores": 2}})
  loop._report_differences([{"machine": {"cores": 3}}, {"machine": {"cores": 2}}], {"machine": {"cores": 2}})
  assert not capfd.readouterr().err
  loop._report_differences([{"machine": {"cores": 2}}, {"machine": {"cores": 3}}], {"machine": {"cores": 2}})
  assert re.search("before {'cores': 3}\n +now +{'cores': 2}", capfd.readouterr().err)


def test_a_change_of_packages_is_reported(capfd):
  """Their arithmetic may round otherwise, and grain's order of rows decides which of them follow."""
  now = {"machine": 1, "versions": {"jax": "0.9", "grain": "0.2", "numpy": "2.4"}}
  for same in (now, {"machine": 1}, {"machine": 1, "versions": ["jax"]}):  # older runs do not tell their versions
    loop._report_differences([same], now)
  assert not capfd.readouterr().err
  loop._report_differences([now | {"versions": {"jax": "0.8", "grain": "0.1", "numpy": "2.4"}}], now)
  err = capfd.readouterr().err
  assert "other packages: maybe other rounding, and of grain maybe another order of rows\n" in err
  assert err.endswith("  jax 0.8 is now 0.9, grain 0.1 is now 0.2\n")


@pytest.mark.long
def test_a_run_with_random_pieces_in_parts_equals_a_run_in_one(prefix, tmp_path, monkeypatch, capfd):
  config = tiny(prefix, steps=24, save_every=5)  # some epochs
  config.data.bpe_dropout, config.train.r_drop = 0.2, 5.0
  config.evaluate.every = 0
  loop.train(config, epath.Path(tmp_path / "whole"))
  packed, pack = [], pipeline.packing_of_epochs

  def counted(*arguments):
    rows_of = pack(*arguments)
    return lambda epoch: (packed.append(epoch), rows_of(epoch))[1]

  loop.train(dataclasses.replace(config, train=dataclasses.replace(config.train, steps=14)), tmp_path / "parts")
  monkeypatch.setattr(pipeline, "packing_of_epochs", counted)
  loop.train(config, epath.Path(tmp_path / "parts"))
  assert min(packed) > 0  # no earlier epoch is packed again
  assert_same_bits(state_of(tmp_path / "parts", config), state_of(tmp_path / "whole", config))
  trained = [[line for line in metrics_of(tmp_path / name) if line["split"] == "train"] for name in ("whole", "parts")]
  assert trained[0] == trained[1]
  fixed = dataclasses.replace(config, data=dataclasses.replace(config.data, bpe_dropout=0.0))
  with pytest.raises(InputError, match=r"config\.data\.bpe_dropout is 0\.0, but the run in .* was begun with 0\.2"):
    loop.train(fixed, epath.Path(tmp_path / "parts"))
  assert_same_bits(*[runs.open(tmp_path / name).model().params for name in ("whole", "parts")])


@pytest.mark.long
def test_a_run_in_shards_in_parts_equals_a_run_in_one(prefix, tmp_path, capfd):
  config = tiny(prefix, steps=24, save_every=5)  # some epochs
  config.data.shard_pairs = 50
  config.evaluate.every = 0
  loop.train(config, tmp_path / "whole")
  assert re.search(
    r"training on [\d,]+ pairs, before any is left out\n +\d+ shards, which are packed during the run",
    capfd.readouterr().err,
  )
  loop.train(dataclasses.replace(config, train=dataclasses.replace(config.train, steps=14)), tmp_path / "parts")
  loop.train(config, tmp_path / "parts")
  assert_same_bits(state_of(tmp_path / "parts", config), state_of(tmp_path / "whole", config))
  trained = [[line for line in metrics_of(tmp_path / name) if line["split"] == "train"] for name in ("whole", "parts")]
  assert trained[0] == trained[1]
  other = dataclasses.replace(config, data=dataclasses.replace(config.data, shard_pairs=60))
  with pytest.raises(InputError, match=r"config\.data\.shard_pairs is 60, but the run in .* was begun with 50"):
    loop.train(other, tmp_path / "parts")


@pytest.mark.parametrize(
  "log",
  [
    {"updates": 1.0},
    {"sums": {"loss": 1.0}, "updates": float("nan")},
    {"sums": {"others": {"x": 1.0}}},
    {"sums": 1.0},
    {"sums": {}, "stopping": {"best": 1.0}},
    {"sums": {"others": {"x": {"loss": 1.0}}}, "updates": 3.0},
    {"sums": {}, "updates": 3.0},
  ],
)
def test_a_checkpoint_with_other_numbers_for_the_log_is_named(tmp_path, monkeypatch, log):
  monkeypatch.setattr(loop.Trainer, "_where", lambda *_: "")
  trainer = object.__new__(loop.Trainer)
  trainer._batches = HostBatches.__new__(HostBatches)
  trainer._stopping, trainer._losses = loop.EarlyStopping(1), ["next"]
  restored = checkpoint.Restored(TrainState(np.int32(7), {}, {}, None), log)
  with pytest.raises(RunError, match=r"checkpoints/7/log does not have the numbers that a run writes: delete it"):
    trainer._resumed(restored, epath.Path(tmp_path))


def test_only_validations_that_any_run_makes_count_for_early_stopping():
  """Not that of the last step, which a run with more steps does not make."""
  trainer = object.__new__(loop.Trainer)
  trainer._config, trainer._stopping = tiny("text", patience=3), loop.EarlyStopping(3)
  assert trainer._config.evaluate.every == 3
  found = [trainer._is_best(step, {checkpoint_files.LOSS: loss}) for step, loss in ((3, 5.0), (4, 1.0), (6, 7.0))]
  assert found == [True, False, False]
  assert trainer._stopping.numbers() == {"best": 5.0, "best_step": 3, "waited": 1}


def test_the_log_has_the_probability_of_teacher_forcing_in_its_last_update(tmp_path):
  """That of update 7, before which there are 6."""
  config = Config(
    model=SequenceToSequenceConfig(), train=TrainConfig(scheduled_sampling=Decay.LINEAR, sampling_k=100.0)
  )
  trainer = object.__new__(loop.Trainer)
  trainer._config, trainer._task, trainer._updates, trainer._seconds = config, TASK, 0, 0.0
  trainer._metrics = MetricsLog(epath.Path(tmp_path), 6, MetricsAccumulator())
  sums = Sums(*np.ones(4))
  trainer._metrics.add({"sums": sums, "skipped": False, "gradient_norm": 1.0, "learning_rate": 1.0})
  trainer._log(7)
  trainer._metrics.close()
  [line] = metrics_of(tmp_path)
  assert line["step"] == 7 and line["forcing_probability"] == pytest.approx(0.94)


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
  [line] = [line for line in metrics_of(tmp_path / "run") if line["split"] == "train"]  # though log_every is larger
  assert (line["step"], line["updates"]) == (4, 4)
  loop.train(config, epath.Path(tmp_path / "run"))
  again = capfd.readouterr().err
  assert len(made) == 4 and "the run is finished: it stopped early after step 4" in again and "resuming" not in again
  found = runs.open(tmp_path / "run").checkpoints
  assert (found.best, found.last) == (2, 4)
  config.train.patience = 3
  loop.train(config, epath.Path(tmp_path / "run"))
  assert len(made) == 8 and "stopped early after step 8" in capfd.readouterr().err
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
  with pytest.raises(RunError, match=r"not finite in the updates of steps 2 to 5, which changed nothing"):
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
def test_a_vocabulary_that_cannot_be_sampled_from_is_refused_before_the_text_is_packed(prefix, tmp_path, monkeypatch):
  loop.train(tiny(prefix, steps=1), epath.Path(tmp_path / "run"))
  config = tiny(prefix)
  config.data.tokenizer, config.data.unigram_alpha = str(tmp_path / "run" / "tokenizer.model"), 0.2
  monkeypatch.setattr(pipeline, "packed_rows", lambda *arguments: pytest.fail("the text was packed"))
  with pytest.raises(InputError, match=r"config\.data\.unigram_alpha"):
    loop.train(config, epath.Path(tmp_path / "other"))


@pytest.mark.long
def test_validation_test_and_decoding_use_the_moving_average(prefix, tmp_path, monkeypatch):
  config = tiny(prefix, ema_decay=0.9)
  config.data.test = prefix
  tested = []
  monkeypatch.setattr(TranslationValidation, "test", lambda self, params: tested.append(jax.device_get(params)))
  loop.train(config, epath.Path(tmp_path))
  state = state_of(tmp_path, config)
  _, params, tokenizer, _ = runs.open(tmp_path).model()
  assert_same_bits(jax.device_get(params), state.average)
  assert_same_bits(tested[0], state.average)
  validation = TranslationValidation(config, TASK, tokenizer)
  of_average, of_params = (
    validation.measure(devices.replicate(params))["loss"] for params in (state.average, state.params)
  )
  assert metrics_of(tmp_path)[-1]["loss"] == of_average != of_params


@pytest.mark.long
def test_the_plan_stands_beside_what_was_seen(prefix, tmp_path, capfd):
  config, log = tiny(prefix), tmp_path / "run" / "train.log"
  loop.train(config, epath.Path(tmp_path / "run"))
  [line] = log.read_text().splitlines()
  assert re.match(r"20\d\d-\d\d-\d\dT\S+ step 6: planned: ", line)
  assert f"{6 * requirements.flops(config).step:.3g} operations in 6 updates" in line
  assert f"{gigabytes(requirements.memory(config, jax.device_count()).total)} on a device" in line
  used = float(re.search(r"([\d.]+) GB in the process$", line)[1])
  assert 0.1 < used < 50  # JAX alone takes hundreds of megabytes
  loop.train(config, epath.Path(tmp_path / "run"))  # nothing is left to do, and nothing to report
  assert log.read_text() == f"{line}\n"
  assert "planned: " not in capfd.readouterr().err


def test_what_a_run_says(whole):
  out, err = whole.said
  lines = err.splitlines()
  assert max(map(len, lines)) <= 80 and out == ""
  number = r"[\d.,e+]+"
  expected = rf"""config.data.validation is the training text:
  its scores and --step best say nothing about other text
config.evaluate.every = 3 is no multiple of config.train.save_every = 2:
  --step best takes the best of those validations that have a checkpoint
learning a vocabulary of 290 tokens
training on 128 pairs
  1,232 source tokens, 1,232 target tokens
  84 rows of 16, {number}% padding
  83 pairs skipped, longer than 16 tokens \(the longest has 26\)
the loss is that of 128 pairs of
  text
  83 pairs skipped, longer than 16 tokens \(the longest has 26\)
step 2: loss {number}, perplexity {number}, {number} target tokens/s
step 3: validation loss {number}, perplexity {number}, BLEU {number}, chrF2 {number}
  source:      .+
  translation: .*
  reference:   .+
  source:      .+
  translation: .*
  reference:   .+
step 4: loss {number}, .*
step 6: loss {number}, .*
step 6: validation loss {number}, perplexity {number}, BLEU {number}, chrF2 {number}
  source:      .+(\n.*)*
the model of step 6 is in
  runs/tiny
step 6: validation loss {number}, perplexity {number}, BLEU {number}, chrF2 {number}
try it:
  transformer-jax translate --workdir runs/tiny < FILE
"""
  assert re.fullmatch(expected, err), err


def test_a_text_that_is_not_there_is_said_before_a_vocabulary_is_learned(prefix, tmp_path, monkeypatch, capfd):
  config = tiny(prefix)
  for key in ("train", "validation", "test"):
    data = dataclasses.replace(config.data, **{key: f"{prefix}.{key}"})
    with pytest.raises(InputError, match=rf"text\.{key}\.en does not exist"):
      loop.train(dataclasses.replace(config, data=data), epath.Path(tmp_path / "run"))
  assert "learning" not in capfd.readouterr().err


@pytest.mark.long
def test_the_end_tells_the_groups_apart_and_invites_to_try_it(tmp_path, monkeypatch, capfd):
  split = {"train": range(20, 70), "validation": range(70, 75), "test": [7, 18, 640, 29]}
  monkeypatch.setattr(numbers, "numbers_of", lambda name: list(split[name]))
  translations = ["sieben", "achtzehn", "sechshundert", "neunundzwanzig tausend"]

  def first_two_right(self, params, pairs):
    return translations

  monkeypatch.setattr(TranslationValidation, "translate", first_two_right)
  config = tiny("train", steps=1)
  names = {"train": "train", "validation": "", "test": "test", "cache_dir": str(tmp_path), "row_length": 16}
  config.data = DataConfig(corpus=Corpus.NUMBERS, **names)
  loop.train(config, epath.Path(tmp_path / "my run"))
  output = capfd.readouterr()
  assert (
    output.out.splitlines()[-1] == "exact match of 1-digit numbers 100.0%, 2-digit numbers 50.0%, 3-digit numbers 0.0%"
  )
  invitation = output.err.splitlines()[-1]
  assert invitation.startswith('  echo "forty-two" | ')
  assert shlex.split(invitation.partition(" | ")[2])[1:] == ["translate", "--workdir", str(tmp_path / "my run")]


@pytest.mark.long
def test_sigterm_saves(prefix, tmp_path, monkeypatch):
  update = loop.Trainer._update

  def interrupted(self, step):
    update(self, step)
    if step == 3:
      os.kill(os.getpid(), signal.SIGTERM)

  before = signal.getsignal(signal.SIGTERM)
  monkeypatch.setattr(loop.Trainer, "_update", interrupted)
  with pytest.raises(SystemExit) as stopped:
    loop.train(tiny(prefix), epath.Path(tmp_path / "run"))
  assert stopped.value.code == 143
  assert signal.getsignal(signal.SIGTERM) is before
  assert int(state_of(tmp_path / "run", tiny(prefix)).step) == 3


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


@pytest.mark.long
@pytest.mark.parametrize(("schedule", "fewer", "more"), [("constant", 1, True), ("cosine", 2, False)])
def test_a_finished_run_stays_as_it_is(prefix, tmp_path, capfd, schedule, fewer, more):
  """Also with fewer steps than it has made; it says how to go on, where that can be done."""
  config = tiny(prefix, steps=2, warmup_steps=1, schedule=Schedule(schedule))
  loop.train(config, epath.Path(tmp_path / "run"))
  before = metrics_of(tmp_path / "run")
  capfd.readouterr()
  config.train.steps = fewer
  loop.train(config, epath.Path(tmp_path / "run"))
  said = f"the run is finished: it has made 2 steps, and config.train.steps is {fewer}"
  assert said + (": a higher config.train.steps goes on\n" if more else "\n") in capfd.readouterr().err
  assert metrics_of(tmp_path / "run") == before


LAZY_IMPORTS = """
import contextlib, json, sys
from etils import epath, epy
lazy_imports, compiling, found = epy.lazy_imports, [], []
@contextlib.contextmanager
def recorded(**options):
  found.append(bool(compiling))
  with lazy_imports(**options):
    yield
epy.lazy_imports = recorded
from tests.tiny_run import tiny
from transformer_jax.runtime import devices
from transformer_jax.trainer import loop
compile_async = devices.compile_async
@contextlib.contextmanager
def watched(*arguments):
  with compile_async(*arguments):
    compiling.append(True)
    yield
    compiling.clear()
devices.compile_async = watched
loop.train(tiny(sys.argv[1], steps=1), epath.Path(sys.argv[2]))
print(json.dumps(found))
"""


@pytest.mark.long
def test_no_lazy_import_while_the_update_is_compiled(prefix, tmp_path):
  """Within `epy.lazy_imports` an import of any thread gives a module whose attributes are missing."""
  done = subprocess.run(
    [sys.executable, "-c", LAZY_IMPORTS, prefix, str(tmp_path / "run")], capture_output=True, text=True
  )
  assert done.returncode == 0, done.stderr
  found = json.loads(done.stdout)
  assert len(found) > 0  # that of grain
  assert not any(found)


@pytest.mark.slow
def test_faults_at_any_moment_lose_nothing(tmp_path):
  """In processes of their own, which are really killed; the long form is the program's own default."""
  program = Path(__file__).parents[2] / "benchmarks" / "kills.py"
  command = [sys.executable, str(program), "--kills=3", "--signals=8", f"--json={tmp_path / 'kills.json'}"]
  subprocess.run(command, check=True)
  faults = json.loads((tmp_path / "kills.json").read_text())["faults"]
  assert len(faults) == 11
  assert len({fault["step"] for fault in faults}) > 3  # the run went on between them


@pytest.mark.long
def test_a_config_that_no_longer_fits_names_its_key(prefix, tmp_path):
  loop.train(tiny(prefix, steps=2), epath.Path(tmp_path))
  other = dataclasses.replace(tiny(prefix), model=dataclasses.replace(tiny(prefix).model, d_ff=32))
  with pytest.raises(InputError, match=r"config\.model\.d_ff is 32, but the run in .* was begun with 16"):
    loop.train(other, epath.Path(tmp_path))


@pytest.mark.long
def test_another_text_is_refused(prefix, tmp_path):
  loop.train(tiny(prefix, steps=2), epath.Path(tmp_path))
  for language in ("en", "de"):
    with open(f"{prefix}.{language}", "a") as file:
      file.write("elf\n")
  with pytest.raises(InputError, match=r"config\.data\.train now gives another text"):
    loop.train(tiny(prefix), epath.Path(tmp_path))


@pytest.mark.long
def test_a_run_that_failed_before_its_first_checkpoint_binds_nothing(prefix, tmp_path):
  folder, config = epath.Path(tmp_path / "run"), tiny(prefix, batch_tokens=64, steps=2)
  (folder / "checkpoints").mkdir(parents=True)
  tokenizer = SentencePieceTokenizer.learn(["abc ab"] * 5, 265)
  run_folder.begin_run(folder, tiny(prefix), tokenizer, [{"data": "another text"}])
  loop.train(config, folder)
  assert runs.open(folder).config == config and len(runs.open(folder).provenance) == 1
  assert [line["step"] for line in metrics_of(folder) if line["split"] == "train"] == [2]


@pytest.mark.long
def test_a_start_that_failed_binds_nothing(prefix, tmp_path):
  with pytest.raises(InputError, match=r"config\.model\.vocab_size is 99999"):
    wrong = dataclasses.replace(tiny(prefix).model, vocab_size=99999)
    loop.train(dataclasses.replace(tiny(prefix), model=wrong), epath.Path(tmp_path / "run"))
  with pytest.raises(InputError, match="is not a run folder"):
    runs.open(tmp_path / "run").model()
  loop.train(tiny(prefix, steps=2), epath.Path(tmp_path / "run"))


def test_a_folder_that_cannot_be_written_is_refused(prefix, tmp_path):
  (tmp_path / "file").write_text("")
  with pytest.raises(InputError, match=r"run folder .* cannot be written"):
    loop.train(tiny(prefix), epath.Path(tmp_path / "file" / "run"))


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
  assert "The last checkpoint in the run folder is good, " in str(error.value)
  state = state_of(tmp_path, config)
  assert all(np.isfinite(x).all() for x in jax.tree.leaves(state))
  lines = metrics_of(tmp_path)
  assert [(line["step"], line["updates"], line["skipped"]) for line in lines] == [(2, 2, 1), (4, 2, 2), (6, 2, 2)]
  assert ["loss" in line for line in lines] == [True, False, False]


@pytest.mark.long
def test_a_run_that_diverges_before_its_first_checkpoint_has_none_that_is_good(prefix, tmp_path):
  config = tiny(prefix, peak_learning_rate=1e38, steps=40, max_skipped=3, save_every=0)
  config = dataclasses.replace(config, evaluate=EvaluateConfig(every=0))
  with pytest.raises(RunError, match=r"The run has no checkpoint yet: give the command again with a lower config"):
    loop.train(config, epath.Path(tmp_path))
  loop.train(dataclasses.replace(config, train=TrainConfig(steps=1, batch_tokens=128)), epath.Path(tmp_path))


@pytest.mark.parametrize("sizes", [{"batch_tokens": 10**12}, {"batch_tokens": 10**6, "accumulation": 10**10}])
def test_a_batch_that_memory_can_never_hold_is_refused_at_once(prefix, tmp_path, sizes, monkeypatch):
  monkeypatch.setattr(pipeline, "packed_rows", lambda *_: pytest.fail("the text is packed"))
  with pytest.raises(InputError, match=rf"^config\.train\.batch_tokens is {sizes['batch_tokens']}: .* GB.* lower it"):
    loop.train(tiny(prefix, **sizes), epath.Path(tmp_path / "run"))


def test_mistakes_of_the_end_are_said_before_the_training(prefix, tmp_path):
  config = tiny(prefix)
  no_test = dataclasses.replace(config, data=dataclasses.replace(config.data, test="/nowhere"))
  tokenize = dataclasses.replace(config, evaluate=dataclasses.replace(config.evaluate, tokenize="13b"))
  seed = tiny(prefix, seed=2**32)
  for wrong, message in (
    (no_test, "/nowhere"),
    (tokenize, "^config.evaluate.tokenize: '13b' is not a tokenisation"),
    (seed, "seed is 4294967296, but must be below"),
  ):
    with pytest.raises(InputError, match=message):
      loop.train(wrong, epath.Path(tmp_path / "run"))
  assert not list(tmp_path.glob("run/checkpoints/*"))


@pytest.mark.long
def test_validation_takes_no_more_rows_at_a_time_than_an_update(prefix, monkeypatch):
  """With micro-batches, of which memory holds one; the result is the same."""
  shapes, means = [], []
  shard = devices.shard
  monkeypatch.setattr(devices, "shard", lambda batch: (shapes.append(batch.rows.shape), shard(batch))[1])
  for accumulation in (1, 4):
    config = tiny(prefix, batch_tokens=64 * 16, accumulation=accumulation)
    tokenizer = pipeline.learn_tokenizer(config.data, 290)
    means.append(Evaluator(config, TASK, prefix, tokenizer).means(devices.replicate(init_params(config, TASK))))
  assert {shape[0] for shape in shapes} == {64, 16}
  assert means[0] == pytest.approx(means[1], rel=1e-6)


@pytest.mark.long
def test_what_is_being_saved_is_saved_when_an_error_ends_the_run(prefix, tmp_path, monkeypatch):
  def fails(*arguments):
    raise InputError("as it happens")

  monkeypatch.setattr(TranslationValidation, "measure", fails)
  with pytest.raises(InputError, match="as it happens"):
    loop.train(tiny(prefix), epath.Path(tmp_path))
  assert int(state_of(tmp_path, tiny(prefix)).step) == 2
  assert not list((tmp_path / "checkpoints").glob("*tmp*"))


def test_exhausted_memory_is_one_sentence(monkeypatch, tmp_path, capfd):
  def exhausted(config, folder, *, accept_edits):
    raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.")

  monkeypatch.setattr(loop, "train", exhausted)
  assert main(["train", "--config=numbers", f"--workdir={tmp_path / 'run'}"]) == 1
  line = capfd.readouterr().err.splitlines()[-1]
  assert line.startswith("transformer-jax: error: memory is exhausted: raise config.train.accumulation")


def test_an_unknown_key_is_refused(prefix, tmp_path):
  config = tiny(prefix)
  config.train.stpes = 7
  with pytest.raises(InputError, match=r"config\.train\.stpes is not a key \(did you mean steps\?\)"):
    loop.train(config, tmp_path / "run")
  assert not (tmp_path / "run").exists()
  config = tiny(prefix)
  config.model.translates = False  # of the class
  with pytest.raises(InputError, match=r"config\.model\.translates is not a key"):
    loop.train(config, tmp_path / "run")


@pytest.mark.long
def test_debug_says_where_it_comes_from(prefix, tmp_path):
  config = dataclasses.replace(tiny(prefix, peak_learning_rate=1e38, steps=40), debug=True)
  with pytest.raises(FloatingPointError, match="nan"):
    loop.train(config, epath.Path(tmp_path))
  assert not (tmp_path / "metrics.jsonl").exists()  # at once, before the first line of the log
  assert not jax.config.jax_debug_nans  # which the caller has not asked for


@pytest.mark.long
def test_decoding_needs_a_finished_checkpoint(prefix, tmp_path):
  with pytest.raises(InputError, match="is not a run folder"):
    runs.open(tmp_path / "nowhere").model()
  loop.train(tiny(prefix, steps=2), epath.Path(tmp_path / "run"))
  config, params, tokenizer, _ = runs.open(tmp_path / "run").model()
  assert config == tiny(prefix, steps=2)
  assert tokenizer.vocab_size == 290
  assert_same_bits(jax.device_get(params), state_of(tmp_path / "run", config).params)
  shutil.rmtree(tmp_path / "run" / "checkpoints")
  with pytest.raises(InputError, match="no finished checkpoint"):
    runs.open(tmp_path / "run").model()


def test_fused_attention_is_refused_where_there_is_no_gpu_for_it(prefix, tmp_path, monkeypatch):
  said = []  # to the other hosts, of which each may have another device
  monkeypatch.setattr(hosts, "gather", lambda text: [said.append(text) or text])
  config = tiny(prefix)
  config.model = ModelConfig(
    **{**vars(config.model), "d_k": 8, "d_v": 8, "dtype": Dtype.BFLOAT16, "fused_attention": True}
  )
  with pytest.raises(
    InputError, match=r"^config\.model\.fused_attention needs an NVIDIA GPU of .*, and the devices here are cpu"
  ):
    loop.train(config, epath.Path(tmp_path / "run"))
  assert not (tmp_path / "run").exists() and "fused_attention needs" in said[-1]


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


@pytest.mark.parametrize("tags", [False, True])
@pytest.mark.parametrize("language", ["en", "de"])
def test_a_pipe_is_refused_as_it_can_be_read_only_once(tmp_path, language, tags):
  (tmp_path / "text.en").write_text("a\n")
  (tmp_path / "text.de").write_text("b\n")
  (tmp_path / f"text.{language}").unlink()
  os.mkfifo(tmp_path / f"text.{language}")
  data = DataConfig(corpus=Corpus.TEXT, train=str(tmp_path / "text"), validation="", test="", tags=tags)
  with pytest.raises(InputError, match=f"text.{language} is a pipe, whose text can be read only once: write it to a"):
    checks.require_texts_exist(Config(data=data))


def test_both_losses_tell_the_best_checkpoint():
  line = {"loss": 3.0, "perplexity": 9.0, "next_loss": 0.5, "accuracy": 0.1}
  trainer = object.__new__(loop.Trainer)
  trainer._config, trainer._state = tiny("text"), SimpleNamespace(params_for_decoding=None)
  trainer._metrics = SimpleNamespace(clock_stopped=contextlib.nullcontext, write=lambda *_: None)
  trainer._validation = SimpleNamespace(measure=lambda params: line, shown={}, samples="")
  assert trainer._evaluate(3, SimpleNamespace(note=lambda *_, **__: None)) == {checkpoint_files.LOSS: 3.5}


def test_the_seed_of_the_config_orders_the_rows(prefix):
  tokenizer = pipeline.learn_tokenizer(tiny(prefix).data, 290)
  packed = pipeline.packed_rows(tiny(prefix).data, prefix, tokenizer)
  found = []
  for seed in (0, 7):
    made = loop._batches(tiny(prefix, seed=seed), TrainingText(packed, None))
    own = Batches(packed, 8, seed, multiple=jax.device_count())
    found.append([made.describe(step) for step in range(3)])
    assert found[-1] == [own.describe(step) for step in range(3)]
  assert found[0] != found[1]


def test_the_seed_of_the_config_draws_the_pieces_and_orders_their_rows(prefix, monkeypatch):
  rows, seeds = [], []
  for seed in (0, 7):
    config = tiny(prefix, seed=seed)
    config.data.bpe_dropout = 0.5
    tokenizer = pipeline.learn_tokenizer(config.data, 290)
    pack = TASK.packing_ahead(config, tokenizer)
    rows.append(np.concatenate([*pack(0)]))
    np.testing.assert_array_equal(rows[-1], np.concatenate([*pipeline.packing_ahead(config.data, tokenizer, seed)(0)]))
    monkeypatch.setattr(loop, "BatchesPackedAhead", lambda pack, folder, packed, size, seed, **_: seeds.append(seed))
    loop._batches(config, TrainingText(pipeline.packed_rows(config.data, prefix, tokenizer), pack))
  assert rows[0].shape != rows[1].shape or (rows[0] != rows[1]).any()
  assert seeds == [0, 7]


@pytest.mark.long
@pytest.mark.parametrize(("keep", "expected"), [(1, {"6"}), (3, {"2", "4", "6"})])
def test_as_many_checkpoints_remain_as_the_config_says(prefix, tmp_path, keep, expected):
  config = tiny(prefix, keep=keep)
  config.data.validation = ""  # so that none is the best
  loop.train(config, tmp_path / "run")
  assert run_folder.checkpoint_names(epath.Path(tmp_path / "run")) == expected


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


@pytest.mark.parametrize(("count", "expected"), [(1, "own"), (2, "main host's")])
def test_all_hosts_begin_with_the_main_hosts_parameters(monkeypatch, count, expected):
  states = {
    name: init_state(tiny("text", seed=seed, ema_decay=0.9), TASK) for seed, name in enumerate(("own", "main host's"))
  }
  monkeypatch.setattr(hosts, "count", lambda: count)
  monkeypatch.setattr(hosts, "broadcast", lambda params: jax.device_get(states["main host's"].params))
  begun = loop.Trainer._begun(SimpleNamespace(_config=tiny("text"), _accept_edits=False), states["own"], None)
  assert_same_bits(begun.params, states[expected].params)
  assert_same_bits(begun.average, states[expected].params)


def test_hosts_compare_jaxs_settings(monkeypatch):
  compared = []
  monkeypatch.setattr(hosts, "require_equal", lambda values, advice: compared.append(values))
  checks.require_equal_hosts(tiny("text"))
  with jax.default_matmul_precision("float32"):
    checks.require_equal_hosts(tiny("text"))
  names = {name for name in compared[0] if compared[0][name] != compared[1][name]}
  assert names == {"jax_default_matmul_precision"} and {"jaxlib", "sacrebleu"} <= compared[0].keys()


def test_a_batch_is_filled_up_for_all_parts_of_all_devices():
  """8 rows on 8 devices, each with 3 parts."""
  config, packed = tiny("text", accumulation=3), PackedRows(np.ones((29, 4, 16), np.uint16), PackingReport(), "")
  batch = loop._batches(config, TrainingText(packed, None))[0]
  assert batch.rows.shape == (24, 4, 16) and batch.rows[:8].all() and not batch.rows[8:].any()


@pytest.mark.parametrize("accept", [False, True])
@pytest.mark.parametrize(("module", "name"), [(loop.resume, "run_to_go_on_with"), (loop.init_from, "open_other")])
def test_edits_are_accepted_where_that_is_said(prefix, tmp_path, monkeypatch, module, name, accept):
  told = []

  def looked(*_, accept_edits=False):
    told.append(accept_edits)
    raise InputError("enough")

  monkeypatch.setattr(module, name, looked)
  with pytest.raises(InputError, match="enough"):
    loop.train(tiny(prefix), tmp_path / "run", accept_edits=accept)
  if name == "open_other":  # for its vocabulary, and later for its parameters
    config = tiny(prefix, init_from="other")
    state = abstract_state(config, TASK)
    with pytest.raises(InputError, match="enough"):
      loop.Trainer._begun(SimpleNamespace(_config=config, _accept_edits=accept), state, None)
  assert set(told) == {accept}
