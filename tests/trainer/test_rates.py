"""The rates that a run tells, in its lines and at its end, by a clock that is set by hand."""

import subprocess
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from etils import epath

from tests.trainer.test_metrics import lines_of
from transformer_jax.config import Config, Corpus, DataConfig, TrainConfig
from transformer_jax.language.config import BERTClassifierConfig, BERTConfig, ELMoConfig, GPTConfig
from transformer_jax.runtime import devices
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks.causal import TASK as CAUSAL
from transformer_jax.tasks.translation import TASK
from transformer_jax.trainer import loop, metrics, summary
from transformer_jax.trainer.early_stopping import EarlyStopping
from transformer_jax.trainer.metrics import MetricsAccumulator, MetricsLog
from transformer_jax.training.sums import Sums

# The target tokens of each update and its seconds; of each pair of updates there is a line.
UPDATES = [(2003, 0.25), (1009, 0.5), (3001, 2.0), (997, 3.0)]


class Clock:
  """Stands for the module `time`."""

  now = 1000.0

  def perf_counter(self):
    return self.now


def update_of(tokens: int, *, skipped: bool = False) -> Any:
  """The metrics of an update, as `train_step` returns them."""
  sums = Sums(*np.array([3.0 * tokens, 2.0 * tokens, 1.0, tokens]))
  return {"sums": sums, "skipped": skipped, "gradient_norm": 1.0, "learning_rate": 1.0}


def trained(folder, monkeypatch, task, interval=None, skipped=()):
  """A trainer after the updates, with validations of an hour and checkpoints of half an hour in between, and what its
  lines say.
  """
  clock, said = Clock(), []
  monkeypatch.setattr(metrics, "time", clock)
  trainer = object.__new__(loop.Trainer)
  trainer._config, trainer._task, trainer._updates, trainer._seconds = Config(), task, 0, 0.0
  trainer._batches = SimpleNamespace(place=lambda step: {})
  trainer._stopping, trainer._state = EarlyStopping(0), None
  trainer._checkpoints = SimpleNamespace(save=lambda *_, **__: setattr(clock, "now", clock.now + 1800.0))
  trainer._metrics = MetricsLog(epath.Path(folder), 0, interval or MetricsAccumulator())
  for step, (tokens, seconds) in enumerate(UPDATES, 1):
    clock.now += seconds
    trainer._metrics.add(update_of(0, skipped=True) if step in skipped else update_of(tokens))
    trainer._save(step, None, planned=True)
    if step % 2 == 0:
      said.append(trainer._log(step))
      with trainer._metrics.clock_stopped():
        clock.now += 3600.0
  trainer._metrics.close()
  return trainer, said


@pytest.mark.parametrize("task", [TASK, CAUSAL], ids=lambda task: task.unit)
def test_a_line_tells_the_tokens_of_its_updates_over_their_seconds(tmp_path, monkeypatch, task):
  trainer, said = trained(tmp_path, monkeypatch, task)
  rates = [(2003 + 1009) / 0.75, (3001 + 997) / 5.0]
  assert [line["tokens_per_second"] for line in lines_of(tmp_path)] == pytest.approx(rates) == [4016.0, 799.6]
  assert [line["seconds"] for line in lines_of(tmp_path)] == [0.75, 5.0]
  assert [line["target_tokens"] for line in lines_of(tmp_path)] == [3012, 3998]
  assert said == [
    f"step 2: loss 3.000, perplexity 7.389, 4,016 {task.unit}/s",
    f"step 4: loss 3.000, perplexity 7.389, 800 {task.unit}/s",
  ]
  assert (trainer._updates, trainer._seconds) == (4, 5.75)


def test_an_interval_that_a_checkpoint_holds_counts_with_its_tokens_and_its_seconds(tmp_path, monkeypatch):
  before = MetricsAccumulator(seconds=1.25)
  before.add(update_of(5000))
  trained(tmp_path, monkeypatch, TASK, before)
  assert [line["tokens_per_second"] for line in lines_of(tmp_path)] == [(5000 + 3012) / 2.0, 799.6]


def test_what_a_skipped_update_has_read_is_no_progress_but_takes_its_time(tmp_path, monkeypatch):
  _, said = trained(tmp_path, monkeypatch, TASK, skipped={1})
  assert lines_of(tmp_path)[0]["tokens_per_second"] == pytest.approx(1009 / 0.75)
  assert said[0].splitlines() == [
    "step 2: 1 of 2 updates skipped, as loss or gradients were not finite",
    "step 2: loss 3.000, perplexity 7.389, 1,345 target tokens/s",
  ]


def test_the_next_command_has_a_tag_where_lines_need_one():
  data = DataConfig(corpus=Corpus.TEXT, train="a:en+de+fr", tags=True)
  command = summary.next_command(Config(data=data), epath.Path("/runs/many"))
  assert command == "sed 's/^/<2de> /' FILE | transformer-jax translate --workdir /runs/many"


@pytest.mark.parametrize(
  ("model", "command"),
  [
    (GPTConfig(), "transformer-jax generate --workdir /runs/a --prompt TEXT"),
    (BERTClassifierConfig(labels="a,b"), "transformer-jax classify --workdir /runs/a --step best < FILE"),
    (BERTConfig(), "transformer-jax train --config=bert:classify --config.train.init_from=/runs/a --workdir NEW "),
    (ELMoConfig(), "python -c 'from transformer_jax.tasks.features import Features; help(Features)'"),
  ],
  ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_the_next_command_is_that_of_the_model(model, command):
  best = isinstance(model, BERTClassifierConfig)
  assert summary.next_command(Config(model=model), epath.Path("/runs/a"), best=best).startswith(command)


@pytest.mark.parametrize("language", ["de/' /dev/null; touch PWNED; : '", "x&\\/y", "{}"])
def test_the_next_command_runs_nothing_that_a_strangers_config_says(language, tmp_path):
  data = DataConfig(corpus=Corpus.TEXT, train="a", target_language=language, tags=True)
  command = summary.next_command(Config(data=data), epath.Path("/runs/many"))
  first, last = command.split(" FILE | ")
  assert last == "transformer-jax translate --workdir /runs/many"
  done = subprocess.run(f"{first}", shell=True, input="a\n", cwd=tmp_path, capture_output=True, text=True, check=True)
  assert done.stdout == f"<2{language}> a\n" and not list(tmp_path.iterdir())


def test_a_run_of_a_model_whose_operations_cannot_be_counted_tells_the_rest(monkeypatch):
  def flops(config, count):
    raise InputError("the operations of the model are not known")

  monkeypatch.setattr(summary.requirements, "flops", flops)
  monkeypatch.setattr(devices, "peak_memory", lambda: (2.25e9, "the first device"))
  assert summary.planned_and_seen(Config(), 7, 3.5) == (
    "planned: not known, the operations of the model are not known; seen: 4 seconds, 2.25 GB in the first device"
  )


@pytest.mark.parametrize(("updates", "seconds", "expected"), [(7, 3.5, "5e+09"), (7, 14.0, "1.25e+09")])
def test_the_operations_a_second_are_those_of_a_device(monkeypatch, updates, seconds, expected):
  """Seven updates of 20e9 operations are 140e9, on eight devices 17.5e9 each."""
  assert jax.device_count() == 8
  monkeypatch.setattr(summary.requirements, "flops", lambda config, count: SimpleNamespace(step=20e9))
  monkeypatch.setattr(summary.requirements, "memory", lambda config, count: SimpleNamespace(total=count * 1.5e9))
  monkeypatch.setattr(devices, "peak_memory", lambda: (2.25e9, "the first device"))
  assert summary.planned_and_seen(Config(), updates, seconds) == (
    "planned: 1.4e+11 operations in 7 updates, 12.00 GB on a device; "
    f"seen: {seconds:,.0f} seconds, {expected} operations/s per device, 2.25 GB in the first device"
  )


def test_a_validation_takes_no_time_of_the_updates(tmp_path, monkeypatch):
  clock = Clock()
  monkeypatch.setattr(metrics, "time", clock)

  def measure(params):
    clock.now += 3600.0
    return {"loss": 3.0, "perplexity": 9.0}

  trainer = object.__new__(loop.Trainer)
  trainer._config, trainer._task, trainer._updates, trainer._seconds = Config(), TASK, 0, 0.0
  trainer._config.data.validation = "text"
  trainer._stopping = EarlyStopping(0)
  trainer._state = SimpleNamespace(params_for_decoding=None)
  trainer._validation = SimpleNamespace(measure=measure, shown={}, samples="")
  trainer._metrics = MetricsLog(epath.Path(tmp_path), 0, MetricsAccumulator())
  for step, (tokens, seconds) in enumerate(UPDATES[:2], 1):
    clock.now += seconds
    trainer._metrics.add(update_of(tokens))
    if step == 1:
      trainer._evaluate(step, SimpleNamespace(note=lambda *_, **__: None))
  trainer._log(2)
  trainer._metrics.close()
  [line] = [line for line in lines_of(tmp_path) if line["split"] == "train"]
  assert (line["seconds"], line["tokens_per_second"]) == (0.75, 4016.0)


def test_a_run_is_named_without_a_current_folder(monkeypatch, tmp_path):
  """Another program may have deleted it during the training."""
  (gone := tmp_path / "gone").mkdir()
  monkeypatch.chdir(gone)
  assert summary.short_path(epath.Path(gone / "my run")) == "'my run'"
  gone.rmdir()
  assert summary.short_path(epath.Path("/runs/mine")) == "/runs/mine"


@pytest.mark.parametrize(("first", "seconds"), [(1, 0.5), (2, 3600.5)])
def test_the_first_wait_for_rows_is_no_time_of_updates(tmp_path, monkeypatch, first, seconds):
  """They cannot be packed ahead. The step before which the hour is waited is `first`."""
  clock = Clock()
  monkeypatch.setattr(metrics, "time", clock)
  trainer = object.__new__(loop.Trainer)
  trainer._config, trainer._stopping = Config(train=TrainConfig(steps=2)), EarlyStopping(0)
  trainer._state, trainer._updates = SimpleNamespace(step=0), 0
  trainer._metrics, trainer._batches = MetricsLog(epath.Path(tmp_path), 0, MetricsAccumulator()), None

  def wait(batches, step, received):
    clock.now += 3600.0 if step + 1 == first else 0.0
    return 0

  def update(step):
    clock.now += 0.25
    trainer._metrics.add(update_of(7))

  monkeypatch.setattr(loop, "_signal_before_rows", wait)
  for name, function in (("_update", update), ("_measure", lambda *_: (None, False)), ("_report", lambda: None)):
    setattr(trainer, name, function)
  found = []
  trainer._close = lambda: found.append(trainer._metrics.interval().seconds)
  trainer.run()
  trainer._metrics.close()
  assert found == [seconds]


@pytest.mark.parametrize("model", [BERTConfig(), ELMoConfig()])
def test_a_command_without_step_is_not_told_of_it(model):
  assert "--step" not in summary.next_command(Config(model=model), epath.Path("/runs/a"), best=True)


def test_a_relative_path_is_no_flag_and_no_home(monkeypatch, tmp_path):
  monkeypatch.chdir(tmp_path)
  shown = [summary.short_path(epath.Path(tmp_path / name)) for name in ("-x", "~/run", "mine")]
  assert shown == ["./-x", "'./~/run'", "mine"]
