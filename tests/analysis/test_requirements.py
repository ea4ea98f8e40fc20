"""Requirements: shapes and formulas beside what JAX counts and what the compiler allocates."""

import dataclasses
import functools
import json
import re
from pathlib import Path

import jax
import numpy as np
import pytest

from configs import base, bert, big, elmo, gpt, rnn
from tests.analysis.examples import SMALL, TINY, transformer_flops, with_model, with_train
from tests.on_devices import over
from transformer_jax.analysis import requirements
from transformer_jax.config import Config, DataConfig, Decay, TrainConfig, flags
from transformer_jax.data.batches import Batch
from transformer_jax.model.config import Dtype, ModelConfig, Remat
from transformer_jax.runtime import devices
from transformer_jax.training import chunked_loss
from transformer_jax.training.initialization import init_params
from transformer_jax.training.step import init_state, train_step
from transformer_jax.training.task import task_of

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.mark.parametrize(
  "changes",
  [
    {},
    {"pre_norm": True, "attention_bias": True},
    {"share_embeddings": False, "share_logits": False},
    {"encoder_layers": 3, "decoder_layers": 1},
    {"share_embeddings": False, "source_vocab_size": 13},
  ],
)
def test_parts_add_up_to_what_is_initialised(changes):
  config = with_model(SMALL, **changes)
  parts = requirements.parameters(config)
  total = parts.pop("total")
  params = jax.eval_shape(lambda: init_params(config, task_of(config.model)))
  assert sum(parts.values()) == total == sum(leaf.size for leaf in jax.tree.leaves(params))
  if size := changes.get("source_vocab_size"):
    assert parts["source embeddings"] == size * SMALL.model.d_model


def test_parts_of_base():
  parts = requirements.parameters(base.get_config())
  assert parts == {
    "embeddings": 37_000 * 512,
    "encoder: attention": 6 * 4 * 512**2,
    "encoder: feed-forward": 6 * (2 * 512 * 2048 + 512 + 2048),
    "encoder: layer normalisation": 6 * 2 * 1024,
    "decoder: self-attention": 6 * 4 * 512**2,
    "decoder: cross-attention": 6 * 4 * 512**2,
    "decoder: feed-forward": 6 * (2 * 512 * 2048 + 512 + 2048),
    "decoder: layer normalisation": 6 * 3 * 1024,
    "total": 63_045_632,
  }


def test_parts_of_bert():
  """Those of the trunk, which its models share, have their own names."""
  d, ff = 192, 768
  parts = requirements.parameters(bert.get_config("classify"))
  total = parts.pop("total")
  assert total == sum(parts.values())
  assert parts == {
    "embeddings": 2048 * d,
    "positions": 128 * d,
    "sides": 2 * d,
    "embedding norm": 2 * d,
    "pooler": d * d + d,
    "classifier": 2 * d + 2,
    "encoder: attention": 4 * 4 * (d * d + d),
    "encoder: feed-forward": 4 * (2 * d * ff + ff + d),
    "encoder: layer normalisation": (4 * 2 + 1) * 2 * d,
  }


@pytest.mark.parametrize("window", [None, 5])
def test_operations_are_those_of_the_formula(window):
  """Backward, each product has two of its size: one for either operand's gradient."""
  config = with_model(SMALL, attention_window=window)
  assert requirements.flops(config).step == 3 * 13 * transformer_flops(config.model, 31)


def test_rows_longer_than_a_usual_batch():
  config = dataclasses.replace(SMALL, data=DataConfig(row_length=32768), train=TrainConfig(batch_tokens=65536))
  assert requirements.flops(config).step == 3 * 2 * transformer_flops(config.model, 32768)


def recurrent(kind):
  config = rnn.get_config(kind)
  model = dataclasses.replace(config.model, vocab_size=997, d_model=38, hidden_size=53, dropout=0.1)
  return dataclasses.replace(
    config, model=model, data=DataConfig(row_length=31), train=TrainConfig(batch_tokens=13 * 31)
  )


def test_parts_of_a_recurrent_model():
  d, h = 38, 53
  lstms = 4 * h * (d + h + 1) + 4 * h * (h + h + 1)
  assert requirements.parameters(recurrent("luong-general")) == {
    "attention": h * h + 2 * h * d,
    "embeddings": 997 * d,
    "input feeding": d * 4 * h,
    "encoder: lstm": lstms,
    "decoder: lstm": lstms,
    "total": h * h + 2 * h * d + 997 * d + 4 * d * h + 2 * lstms,
  }


def test_operations_of_a_recurrent_model():
  """The formula of the forward pass: gates of 2 + 2 LSTMs, the projection to d_model and the output layer."""
  d, h, length = 38, 53, 31
  gates = 2 * 4 * h * ((d + h) + (h + h))
  forward = 13 * length * 2 * (gates + h * d + d * 997)
  config = recurrent("plain")
  assert requirements.flops(config).step == 3 * forward
  sampled = with_train(config, scheduled_sampling=Decay.LINEAR)  # a pass more, which chooses the inputs
  assert requirements.flops(sampled).step == 4 * forward


@pytest.mark.long
def test_operations_of_base_are_near_6_n_d():
  found = requirements.flops(base.get_config())
  assert found.six_n_d == 6 * 63_045_632 * 25_088
  assert found.six_n_d * 100_000 == pytest.approx(9.5e17, rel=0.01)
  assert 1 < found.step / found.six_n_d < 1.2  # attention's own matmuls, at rows of 256, come on top


# One row, so that the update needs more memory than the passes.
LARGE = Config(
  data=DataConfig(row_length=31),
  model=ModelConfig(vocab_size=211, num_layers=2, d_model=512, d_ff=2048, num_heads=8),
  train=TrainConfig(batch_tokens=31),
)


@pytest.mark.long
@pytest.mark.parametrize(
  "config",
  [
    TINY,
    with_model(with_train(TINY, accumulation=4), num_layers=1, pre_norm=True, d_ff=509, dropout=0.0),
    with_model(dataclasses.replace(TINY, data=DataConfig(row_length=239)), num_layers=1, d_k=19),
    with_model(with_train(TINY, r_drop=5.0), num_layers=1),
    recurrent("luong-general"),
    with_model(elmo.get_config(), vocab_size=2039, d_model=89),
    LARGE,
    with_model(with_train(LARGE, accumulation=4, batch_tokens=4 * 31), num_layers=1),
    with_model(with_train(LARGE, ema_decay=0.9), num_layers=1, vocab_size=20_011, d_ff=37),
    *(pytest.param(rnn.get_config(kind), marks=pytest.mark.slow) for kind in ("plain", "rnn", "luong-general")),
    pytest.param(recurrent("bahdanau"), marks=pytest.mark.slow),
  ],
  ids=[
    "tiny",
    "accumulation",
    "long rows",
    "R-Drop",
    "small luong",
    "elmo",
    "one row",
    "parts of one row",
    "large vocabulary",
    "plain",
    "rnn",
    "luong",
    "bahdanau",
  ],
)
def test_memory_is_just_above_what_the_compiler_allocates(config):
  rows = requirements.rows_at_a_time(config, 1) * config.train.accumulation
  state = jax.eval_shape(lambda: init_state(config, task_of(config.model)))
  shape = 1, rows, task_of(config.model).parts, config.data.row_length
  batch = Batch(jax.ShapeDtypeStruct(shape, np.uint16), jax.ShapeDtypeStruct((1, rows), np.int32))
  step = over(1, functools.partial(train_step, config, task_of(config.model)), donate_argnums=(0,))
  compiled = step.lower(state, batch).compile().memory_analysis()
  allocated = compiled.argument_size_in_bytes + compiled.temp_size_in_bytes
  assert allocated < requirements.memory(config).total < 1.4 * allocated


@pytest.mark.long
def test_memory_grows_with_the_rows_in_a_line():
  config = with_train(SMALL, batch_tokens=256 * 31)  # whole chunks of the loss
  more = with_train(SMALL, batch_tokens=768 * 31)
  for one in (config, more):
    assert requirements.memory(one).activations == pytest.approx(
      requirements._kept(one, requirements.rows_at_a_time(one, 1), True), rel=1e-4
    )


def on_an_h200():
  """The rows of `docs/results/speed/h200.json`: training programs, and the GB that XLA allocated on the GPU."""
  measured = json.loads((CONFIGS.parent / "docs/results/speed/h200.json").read_text())["parts"]["training"]["rows"]
  return [(row["case"], row["memory, GB"]) for row in measured]


@pytest.mark.long
@pytest.mark.parametrize(("case", "allocated"), on_an_h200())
def test_memory_is_just_above_what_xla_allocated_on_a_gpu(case, allocated):
  size, attention, rows, tokens = re.fullmatch(r"(\w+), (\w+), rows of (\d+), ([\d,]+) tokens a side", case).groups()
  config = {"base": base, "big": big}[size].get_config()
  config = with_model(config, dtype=Dtype.BFLOAT16, fused_attention=attention == "fused")
  config = dataclasses.replace(config, data=DataConfig(row_length=int(rows)))
  config = with_train(config, batch_tokens=int(tokens.replace(",", "")), ema_decay=0.0)
  with devices.traced_for("gpu"):
    assert allocated < requirements.memory(config).total / 1e9 < 1.13 * allocated


@pytest.mark.parametrize(
  ("config", "predictions"), [(gpt.get_config(), 1), (elmo.get_config(), 2), (bert.get_config("classify"), 0)]
)
def test_the_largest_logits_are_those_of_the_loss(config, predictions, monkeypatch):
  """ELMo predicts both neighbours of a token, and a classifier no token."""
  config = with_train(config, batch_tokens=3 * config.data.row_length)
  counted, chunk_size = [], chunked_loss.chunk_size
  with devices.traced_for("gpu"):
    working = requirements.memory(config).working
    monkeypatch.setattr(chunked_loss, "chunk_size", lambda tokens: counted.append(tokens) or chunk_size(tokens))
    requirements._kept(config, 3, False)
  assert counted == [3 * predictions * config.data.row_length] * (predictions > 0)
  assert working == 2 * sum(counted) * config.model.vocab_size * 4


def test_memory_of_parameters_and_optimizer():
  found = requirements.state(base.get_config())
  assert found.parameters == found.gradients == 63_045_632 * 4
  assert 0 <= found.optimizer - 2 * found.parameters < 64  # and the counters
  averaged = requirements.state(with_train(base.get_config(), ema_decay=0.9))
  assert averaged.parameters == 2 * found.parameters and averaged.gradients == found.gradients


@pytest.mark.parametrize(("accumulation", "sums"), [(1, 1), (2, 2), (7, 2)])
def test_micro_batches_need_a_second_sum_of_gradients(accumulation, sums):
  """That of the micro-batches so far, beside the present one's."""
  config = with_train(SMALL, accumulation=accumulation)
  found = requirements.memory(config)
  assert found.gradients == sums * requirements.parameters(config)["total"] * 4
  assert found.total == sum(dataclasses.astuple(found))


def test_devices_and_micro_batches_share_the_rows():
  config = with_train(SMALL, batch_tokens=24 * 31)
  assert requirements.rows_at_a_time(config, 1) == 24
  assert requirements.rows_at_a_time(config, 4) == 6
  assert requirements.rows_at_a_time(with_train(config, accumulation=3), 4) == 2
  assert requirements.rows_at_a_time(config, 7) == 4  # filled up


@pytest.mark.parametrize(
  ("count", "accumulation", "rows"), [(1, 1, 13), (2, 1, 14), (5, 1, 15), (5, 2, 20), (1, 7, 14)]
)
def test_operations_have_the_rows_that_fill_a_batch_up(count, accumulation, rows):
  found = requirements.flops(with_train(SMALL, accumulation=accumulation), count)
  assert found.step == 3 * rows * transformer_flops(SMALL.model, 31)
  assert found.six_n_d == requirements.flops(SMALL).six_n_d


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_more_micro_batches_never_need_more_memory(platform):
  """But for the second sum of gradients, which two need and one does not."""
  config = with_train(SMALL, batch_tokens=601 * 31)
  parts = [*range(2, 40), *range(40, 602, 11)]
  with devices.traced_for(platform):
    needed = [requirements.memory(with_train(config, accumulation=n)).total for n in parts]
  assert needed == sorted(needed, reverse=True) and len(set(needed)) > 20


@pytest.mark.parametrize("remat", [Remat.LAYER, Remat.ATTENTION])
def test_layers_of_each_side_take_the_memory_of_as_many_layers(remat):
  """The same model, written in two ways."""
  layers = SMALL.model.num_layers
  written = with_model(SMALL, remat=remat, num_layers=1, encoder_layers=layers, decoder_layers=layers)
  assert requirements.memory(written) == requirements.memory(with_model(SMALL, remat=remat))


@pytest.mark.parametrize("count", [2, 6])
def test_each_device_needs_what_its_share_of_the_rows_needs(count):
  of_all, of_one = with_train(SMALL, batch_tokens=24 * 31), with_train(SMALL, batch_tokens=24 // count * 31)
  assert requirements.memory(of_all, count) == requirements.memory(of_one)
  assert requirements.memory(of_all, count).activations < requirements.memory(of_all).activations


def test_r_drop_computes_each_row_twice():
  once, twice = (requirements.flops(with_train(SMALL, r_drop=alpha)) for alpha in (0.0, 5.0))
  assert once.step == 3 * 13 * transformer_flops(SMALL.model, 31)
  assert (twice.step, twice.six_n_d) == (2 * once.step, 2 * once.six_n_d)


@pytest.mark.long
@pytest.mark.parametrize("name", ["base", "big", "iwslt14"])
def test_a_config_says_what_plan_counts(name):
  config, page = flags.read_config(name, {}), (CONFIGS / f"{name}.py").read_text()
  parameters, operations = re.search(r"counts ([\d,]+) parameters and (\S+) operations", page).groups()
  assert requirements.parameters(config)["total"] == int(parameters.replace(",", ""))
  assert requirements.flops(config).step * config.train.steps == pytest.approx(float(operations), rel=0.02)
