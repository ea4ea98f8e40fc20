"""An update that an earlier process has traced, against one that is traced."""

import dataclasses
import json
import subprocess
import sys

import pytest

from tests.example_commands import plain_environment
from transformer_jax import registry
from transformer_jax.config import Config, Schedule, TrainConfig, serialization
from transformer_jax.model.config import ModelConfig
from transformer_jax.registry import Family
from transformer_jax.runtime import devices, trace_cache
from transformer_jax.tasks.translation import TASK
from transformer_jax.training import step

UPDATES = """
import hashlib, json, sys
import jax, numpy as np
from transformer_jax.config import Config, DataConfig, TrainConfig
from transformer_jax.data.batches import Batch
from transformer_jax.language.config import BERTConfig
from transformer_jax.model.config import ModelConfig
from transformer_jax.runtime import devices, trace_cache
from transformer_jax.runtime.compilation_cache import use_compilation_cache
from transformer_jax.training import step
from transformer_jax.training.task import task_of

trace_cache._UNCHANGED_SINCE = float("inf")
use_compilation_cache()
family, steps, traces = sys.argv[1:]
sizes = {"vocab_size": 31, "num_layers": 1, "d_model": 4, "d_ff": 6, "num_heads": 2}
model = ModelConfig(**sizes) if family == "transformer" else BERTConfig(**sizes)
config = Config(model=model, data=DataConfig(row_length=7), train=TrainConfig(steps=int(steps), batch_tokens=21))
task = task_of(model)
generator = np.random.default_rng(0)
rows = generator.integers(1, 3, (3, task.parts, 7)).astype(np.uint16)
rows[:, 0] = generator.integers(5, 31, (3, 7))
state = devices.replicate(step.init_state(config, task))
if traces == "never":
  step.train_step = lambda *_: sys.exit("traced")
update = step.update_on_devices(config, task)
for _ in range(3):
  state, metrics = update(state, devices.shard(Batch(rows, np.arange(3, dtype=np.int32))))
digest = hashlib.sha256()
for leaf in jax.tree.leaves((state, metrics)):
  digest.update(np.asarray(leaf).tobytes())
print(json.dumps([digest.hexdigest(), float(metrics["sums"].loss), sorted(metrics["sums"].others)]))
"""


@pytest.mark.long
@pytest.mark.parametrize("family", ["transformer", "bert"])
def test_a_cached_update_gives_the_bits_of_a_traced_one(tmp_path, family):
  def start(cache, steps, traces):
    command = [sys.executable, "-c", UPDATES, family, str(steps), traces]
    done = subprocess.run(command, env=plain_environment(cache), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)

  (tmp_path / "a file").write_text("")
  without = start(tmp_path / "a file", 3, "once")
  assert without[1] > 0
  assert start(tmp_path / "cache", 3, "once") == without
  assert start(tmp_path / "cache", 5, "never") == without  # a run that goes on for longer


@pytest.mark.parametrize("schedule", Schedule)
def test_more_steps_take_the_same_update_unless_the_rate_depends_on_them(monkeypatch, schedule):
  monkeypatch.setattr(trace_cache, "kept", lambda _, key, *__, **___: key)
  configs = [Config(train=TrainConfig(steps=steps, warmup_steps=3, schedule=schedule)) for steps in (5, 7)]
  first, second = (step.update_on_devices(config, TASK) for config in configs)
  assert (first == second) is (schedule in (Schedule.INVERSE_SQUARE_ROOT, Schedule.CONSTANT))


CHANGES = {
  "train.label_smoothing": 0.2,
  "train.peak_learning_rate": 1e-3,
  "train.clip_norm": 1.0,
  "train.r_drop": 5.0,
  "train.ema_decay": 0.9,
  "train.beta2": 0.9,
  "train.seed": 1,
  "train.accumulation": 2,
  "model.dropout": 0.2,
  "model.activation": "gelu",
  "model.dtype": "bfloat16",
}


@pytest.mark.parametrize("key", CHANGES)
def test_whatever_changes_an_update_is_in_the_key_of_its_trace(monkeypatch, key):
  monkeypatch.setattr(trace_cache, "kept", lambda _, key, *__, **___: key)
  before = Config()
  after = serialization.changed(before, {key: CHANGES[key]})
  assert before != after and step.update_on_devices(before, TASK) != step.update_on_devices(after, TASK)


def test_a_loss_from_elsewhere_is_not_kept(monkeypatch):
  monkeypatch.setattr(trace_cache, "kept", lambda *_, **__: "kept")
  assert step.update_on_devices(Config(), TASK) == "kept"
  foreign = dataclasses.replace(TASK, batch_sums=lambda *_: None)
  assert step.update_on_devices(Config(), foreign) != "kept"
  monkeypatch.setattr(devices, "on_cpu", lambda: False)
  assert step.update_on_devices(Config(), TASK) != "kept"


class OwnConfig(ModelConfig):
  """Of a family of another package."""


def test_a_model_from_elsewhere_is_not_kept(monkeypatch):
  """Its code, which may change, is in no key."""
  own = Family(f"{__name__}:OwnConfig", "own:Own")
  monkeypatch.setattr(registry, "_FAMILIES", registry._FAMILIES | {"own": own})
  monkeypatch.setattr(trace_cache, "kept", lambda *_, **__: "kept")
  found = [step.update_on_devices(Config(model=model), TASK) for model in (ModelConfig(), OwnConfig())]
  assert [each == "kept" for each in found] == [True, False]
