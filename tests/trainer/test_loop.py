"""The loop: what a run leaves behind, and that a run in parts equals a run in one."""

import contextlib
import dataclasses
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import jax
import numpy as np
import pytest
from etils import epath

from tests.example_run import metrics_of, write_corpus
from tests.tiny_run import assert_same_bits, state_of, tiny
from transformer_jax import runs
from transformer_jax.analysis import requirements
from transformer_jax.config import Config, Corpus, DataConfig, Decay, Schedule, TrainConfig
from transformer_jax.data import numbers, pipeline
from transformer_jax.data.batches import Batches
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.data.row_cache import PackedRows
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.recurrent.config import SequenceToSequenceConfig
from transformer_jax.runs import checkpoint_files, run_folder
from transformer_jax.runtime import devices, hosts
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.sizes import gigabytes
from transformer_jax.tasks.evaluator import Evaluator
from transformer_jax.tasks.translation import TASK
from transformer_jax.tasks.translation_validation import TranslationValidation
from transformer_jax.trainer import checks, loop
from transformer_jax.trainer.metrics import MetricsAccumulator, MetricsLog
from transformer_jax.training.initialization import init_params
from transformer_jax.training.step import init_state
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
  assert [len(runs.open(folder).provenance) for folder in (whole, parts)] == [1, 2]


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
  assert "packages have changed: rounding may differ, and with grain the order of rows\n" in err
  assert err.endswith("  jax 0.8 is now 0.9, grain 0.1 is now 0.2\n")
  loop._report_differences([now | {"versions": {"jax": "0.8"}}], now)
  assert "packages have changed: rounding may differ\n" in capfd.readouterr().err


def test_a_change_of_jax_settings_is_reported(capfd):
  """Of those that the update depends on, as its dropout does on how keys are split."""
  now = {"machine": 1, "settings": checks.jax_settings()}
  for same in (now, {"machine": 1}):  # older runs do not tell them
    loop._report_differences([same], now)
  assert not capfd.readouterr().err
  loop._report_differences([now], now | {"settings": now["settings"] | {"jax_threefry_partitionable": "False"}})
  said = "settings of JAX have changed: results will differ\n  jax_threefry_partitionable True is now False\n"
  assert capfd.readouterr().err == said


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
def test_the_summary_counts_the_updates_of_its_start_alone(prefix, tmp_path, monkeypatch):
  """And their seconds; those that a line of the log shares with an earlier start are of that one."""
  seen, run = [], epath.Path(tmp_path / "run")
  monkeypatch.setattr(loop, "planned_and_seen", lambda config, *counts: seen.append(counts) or "")
  loop.train(tiny(prefix, steps=3, log_every=100), run)
  shutil.rmtree(run / "checkpoints" / "3")  # that of step 2 has two updates of the next line
  before = checkpoint_files.read_log(run, 2)["seconds"]
  loop.train(tiny(prefix, steps=4, log_every=100), run)
  [*_, line] = (line for line in runs.open(run).metrics if line["split"] == "train")
  assert [updates for updates, _ in seen] == [3, 2] and line["updates"] == 4
  assert seen[1][1] == pytest.approx(line["seconds"] - before) and before > 0


@pytest.mark.parametrize("fails", ["Trainer", "begin_run"])
def test_ctrl_c_before_the_first_update_is_reported(prefix, tmp_path, monkeypatch, capfd, fails):
  """And what was opened by then is closed."""
  closed = []

  def interrupted(*args):
    raise KeyboardInterrupt

  monkeypatch.setattr(loop, "Trainer", lambda *args: SimpleNamespace(begun_with={}, close=lambda: closed.append(1)))
  monkeypatch.setattr(*((loop, "Trainer") if fails == "Trainer" else (run_folder, "begin_run")), interrupted)
  with pytest.raises(KeyboardInterrupt):
    loop.train(tiny(prefix), epath.Path(tmp_path / "run"))
  said = ["stopped by SIGINT before this start made an update:", "  give the same command again"]
  assert capfd.readouterr().err.splitlines()[-2:] == said and len(closed) == (fails == "begin_run")


@pytest.mark.long
def test_the_plan_stands_beside_what_was_seen(prefix, tmp_path, capfd):
  config, log = tiny(prefix), tmp_path / "run" / "train.log"
  loop.train(config, epath.Path(tmp_path / "run"))
  [line] = log.read_text().splitlines()
  assert re.match(r"20\d\d-\d\d-\d\dT\S+ step 6: planned: ", line)
  assert f"{6 * requirements.flops(config, jax.device_count()).step:.3g} operations in 6 updates" in line
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
computing on {jax.device_count()} devices \(cpu\)
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


@pytest.mark.long
def test_the_end_tells_the_groups_apart_and_invites_to_try_it(tmp_path, monkeypatch, capfd):
  split = {"train": range(20, 70), "validation": range(70, 75), "test": [7, 18, 640, 29]}
  monkeypatch.setattr(numbers, "numbers_of", lambda name: list(split[name]))
  translations = ["sieben", "achtzehn", "sechshundert", "neunundzwanzig tausend"]

  def first_two_right(self, params, pairs, name):
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
@pytest.mark.parametrize(("schedule", "more"), [("constant", True), ("cosine", False)])
def test_a_finished_run_stays_as_it_is(prefix, tmp_path, capfd, schedule, more):
  """It says how to go on, where that can be done."""
  config = tiny(prefix, steps=2, warmup_steps=1, schedule=Schedule(schedule))
  loop.train(config, epath.Path(tmp_path / "run"))
  before = metrics_of(tmp_path / "run")
  capfd.readouterr()
  loop.train(config, epath.Path(tmp_path / "run"))
  said = "the run is finished: it has made 2 steps, and config.train.steps is 2"
  assert said + (": raise config.train.steps to continue\n" if more else "\n") in capfd.readouterr().err
  assert metrics_of(tmp_path / "run") == before
  if more:
    config.train.steps = 1
    with pytest.raises(InputError, match=r"config.train.steps is 1, but the run in .* has made 2: give 2 or more"):
      loop.train(config, epath.Path(tmp_path / "run"))
    assert json.loads((tmp_path / "run" / "config.json").read_text())["train"]["steps"] == 2


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


def test_both_losses_tell_the_best_checkpoint():
  line = {"loss": 3.0, "perplexity": 9.0, "next_loss": 0.5, "accuracy": 0.1}
  trainer = object.__new__(loop.Trainer)
  trainer._config, trainer._state = tiny("text"), SimpleNamespace(params_for_decoding=None)
  trainer._metrics = SimpleNamespace(
    clock_stopped=contextlib.nullcontext, interval=MetricsAccumulator, write=lambda *_: None
  )
  trainer._validation = SimpleNamespace(measure=lambda params: line, shown={}, samples="")
  assert trainer._evaluate(3, SimpleNamespace(note=lambda *_, **__: None)) == {checkpoint_files.LOSS: 3.5}


def test_the_seed_of_the_config_orders_the_rows(prefix):
  tokenizer = pipeline.learn_tokenizer(tiny(prefix).data, 290)
  packed = pipeline.packed_rows(tiny(prefix).data, prefix, tokenizer)
  found = []
  for seed in (0, 7):
    made = loop._batches(tiny(prefix, seed=seed), packed, None)
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
    loop._batches(config, pipeline.packed_rows(config.data, prefix, tokenizer), pack)
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
  assert names == {"jax_default_matmul_precision"}
  assert {"jaxlib", "sacrebleu", "jax_enable_x64", "jax_threefry_partitionable"} <= compared[0].keys()


def test_a_batch_is_filled_up_for_all_parts_of_all_devices():
  """8 rows on 8 devices, each with 3 parts."""
  config, packed = tiny("text", accumulation=3), PackedRows(np.ones((29, 4, 16), np.uint16), PackingReport(), "")
  batch = loop._batches(config, packed, None)[0]
  assert batch.rows.shape == (24, 4, 16) and batch.rows[:8].all() and not batch.rows[8:].any()


def test_an_update_waits_for_all_but_those_in_flight():
  waited, found = [], object.__new__(loop.Trainer)
  found._metrics = SimpleNamespace(add=lambda metrics: None, wait=waited.append)
  found._state, found._batches = None, [np.zeros((8, 1))]
  found._step = lambda state, rows: ("new", {})
  found._update(1)
  assert found._state == "new" and waited == [devices.steps_in_flight()]


def test_a_start_records_what_the_next_one_compares(monkeypatch, capfd):
  packed = PackedRows(np.zeros((0, 4, 3), np.uint16), PackingReport(), "digest")
  first = json.loads(json.dumps(loop._provenance(packed)))

  def said():
    loop._report_differences([first], loop._provenance(packed))
    return capfd.readouterr().err

  assert first["data"] == "digest" and said() == ""
  with monkeypatch.context() as patch:
    patch.setattr(loop, "cores", lambda: 97)
    assert said().startswith("another machine, cores or devices: results are equal up to rounding only\n")
  with jax.default_matmul_precision("float32"):
    assert "settings of JAX have changed: results will differ\n  jax_default_matmul_precision " in said()
  with monkeypatch.context() as patch:
    patch.setattr(checks, "package_versions", lambda: first["versions"] | {"jax": "0.0"})
    assert "packages have changed: rounding may differ\n" in said()


def test_the_end_shows_samples_of_the_test_text_and_prints_its_scores(tmp_path, capfd):
  trainer = object.__new__(loop.Trainer)
  trainer._config, trainer._workdir = Config(data=DataConfig(test="text")), epath.Path(tmp_path)
  trainer._state = SimpleNamespace(step=7, params_for_decoding="the average")
  trainer._validation = SimpleNamespace(test=lambda params: f"the scores of {params}", samples="  source:      a")
  trainer._report()
  out, err = capfd.readouterr()
  assert out == "the scores of the average\n"
  assert err.startswith("the model of step 7 is in\n") and err.endswith("\n  source:      a\n")
