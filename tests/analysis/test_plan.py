"""Plans: shapes and formulas beside what JAX counts and what the compiler allocates."""

import dataclasses
import functools
import json
import os
import re
from pathlib import Path

import jax
import numpy as np
import pytest

from configs import base, big, rnn
from transformer_jax.__main__ import main
from transformer_jax.analysis import plan
from transformer_jax.config import Config, DataConfig, TrainConfig
from transformer_jax.data.batches import Batch
from transformer_jax.model.config import Dtype, ModelConfig, Remat
from transformer_jax.runtime import devices
from transformer_jax.runtime.errors import InputError
from transformer_jax.training.initialization import init_params
from transformer_jax.training.step import init_state, train_step
from transformer_jax.training.task import task_of

CONFIGS = Path(__file__).parents[2] / "configs"
SMALL = Config(
  data=DataConfig(row_length=31),
  model=ModelConfig(vocab_size=997, num_layers=2, d_model=38, d_ff=101, num_heads=3, d_k=11, d_v=7, dropout=0.1),
  train=TrainConfig(batch_tokens=13 * 31),
)


def with_train(config, **changes):
  return dataclasses.replace(config, train=dataclasses.replace(config.train, **changes))


def with_model(config, **changes):
  return dataclasses.replace(config, model=dataclasses.replace(config.model, **changes))


# Parameters.


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
  parts = plan.parameters(config)
  total = parts.pop("total")
  params = jax.eval_shape(lambda: init_params(config, task_of(config.model)))
  assert sum(parts.values()) == total == sum(leaf.size for leaf in jax.tree.leaves(params))
  if size := changes.get("source_vocab_size"):
    assert parts["source embeddings"] == size * SMALL.model.d_model


def test_parts_of_base():
  parts = plan.parameters(base.get_config())
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


# Operations.


def transformer_flops(model: ModelConfig, length: int) -> int:
  """The operations of the forward pass' matmuls by formula, for a row of `length` source and target positions each."""
  d, heads = model.d_model, model.num_heads
  widths = heads * (model.head_dim_k + model.head_dim_v)  # of a token's queries and head outputs, or keys and values
  projections = 2 * length * d * (2 * widths)
  scores_and_means = 2 * length * length * widths
  feed_forward = 2 * length * d * model.d_ff * 2
  encoder_layer = projections + scores_and_means + feed_forward
  decoder_layer = 2 * (projections + scores_and_means) + feed_forward
  return model.num_layers * (encoder_layer + decoder_layer) + 2 * length * d * model.vocab_size


@pytest.mark.parametrize("window", [None, 5])
def test_operations_are_those_of_the_formula(window):
  """Backward, each product has two of its size: one for either operand's gradient."""
  config = with_model(SMALL, attention_window=window)
  assert plan.flops(config).step == 3 * 13 * transformer_flops(config.model, 31)


def recurrent(kind):
  config = rnn.get_config(kind)
  model = dataclasses.replace(config.model, vocab_size=997, d_model=38, hidden_size=53, dropout=0.1)
  return dataclasses.replace(
    config, model=model, data=DataConfig(row_length=31), train=TrainConfig(batch_tokens=13 * 31)
  )


def test_parts_of_a_recurrent_model():
  d, h = 38, 53
  lstms = 4 * h * (d + h + 1) + 4 * h * (h + h + 1)
  assert plan.parameters(recurrent("luong-general")) == {
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
  assert plan.flops(recurrent("plain")).step == 3 * forward


@pytest.mark.long
def test_operations_of_base_are_near_6_n_d():
  found = plan.flops(base.get_config())
  assert found.six_n_d == 6 * 63_045_632 * 25_088
  assert found.six_n_d * 100_000 == pytest.approx(9.5e17, rel=0.01)
  assert 1 < found.step / found.six_n_d < 1.2  # attention's own matmuls, at rows of 256, come on top


# Memory.


TINY = Config(
  data=DataConfig(row_length=61),
  model=ModelConfig(vocab_size=2003, num_layers=2, d_model=128, d_ff=256, num_heads=4, dropout=0.3),
  train=TrainConfig(batch_tokens=60 * 61),
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
    pytest.param(recurrent("plain"), marks=pytest.mark.slow),
    pytest.param(recurrent("bahdanau"), marks=pytest.mark.slow),
  ],
  ids=["tiny", "accumulation", "long rows", "R-Drop", "luong", "plain", "bahdanau"],
)
def test_memory_is_just_above_what_the_compiler_allocates(config):
  rows = plan.rows_at_a_time(config, 1) * config.train.accumulation
  state = jax.eval_shape(lambda: init_state(config, task_of(config.model)))
  batch = Batch(
    jax.ShapeDtypeStruct((1, rows, 4, config.data.row_length), np.uint16), jax.ShapeDtypeStruct((1, rows), np.int32)
  )
  step = jax.pmap(
    functools.partial(train_step, config, task_of(config.model)),
    axis_name=devices.AXIS,
    in_axes=(None, 0),
    out_axes=(None, None),
    donate_argnums=(0,),
    devices=jax.local_devices()[:1],
  )
  compiled = step.lower(state, batch).compile().memory_analysis()
  allocated = compiled.argument_size_in_bytes + compiled.temp_size_in_bytes
  assert allocated < plan.memory(config).total < 1.4 * allocated


@pytest.mark.long
def test_memory_grows_with_the_rows_in_a_line():
  config = with_train(SMALL, batch_tokens=256 * 31)  # whole chunks of the loss
  more = with_train(SMALL, batch_tokens=768 * 31)
  for one in (config, more):
    assert plan.memory(one).activations == pytest.approx(plan._kept(one, plan.rows_at_a_time(one, 1), True), rel=1e-4)


@pytest.mark.long
def test_fused_attention_is_planned_as_plain_attention_without_a_gpu():
  config = with_model(dataclasses.replace(TINY, data=DataConfig(row_length=62)), dtype=Dtype.BFLOAT16)
  assert plan.build_report(with_model(config, fused_attention=True)) == plan.build_report(config)


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
    assert allocated < plan.memory(config).total / 1e9 < 1.13 * allocated


def test_memory_of_parameters_and_optimizer():
  found = plan._state(base.get_config())
  assert found.parameters == found.gradients == 63_045_632 * 4
  assert 0 <= found.optimizer - 2 * found.parameters < 64  # and the counters


@pytest.mark.parametrize(("accumulation", "sums"), [(1, 1), (2, 2), (7, 2)])
def test_micro_batches_need_a_second_sum_of_gradients(accumulation, sums):
  """That of the micro-batches so far, beside the present one's."""
  config = with_train(SMALL, accumulation=accumulation)
  found = plan.memory(config)
  assert found.gradients == sums * plan.parameters(config)["total"] * 4
  assert found.total == sum(dataclasses.astuple(found))


def test_devices_and_micro_batches_share_the_rows():
  config = with_train(SMALL, batch_tokens=24 * 31)
  assert plan.rows_at_a_time(config, 1) == 24
  assert plan.rows_at_a_time(config, 4) == 6
  assert plan.rows_at_a_time(with_train(config, accumulation=3), 4) == 2
  assert plan.rows_at_a_time(config, 7) == 4  # filled up


# The paper's batch in the memory at hand.


@pytest.mark.slow
@pytest.mark.parametrize(("make", "devices"), [(base.get_config, 1), (big.get_config, 8)], ids=["base", "big"])
def test_fit_gives_the_papers_batch(make, devices):
  budget = 16 * 10**9
  fitted = plan.fit(make(), budget, devices)
  assert abs(fitted.train.batch_tokens - 25_000) <= devices * fitted.data.row_length
  assert plan.memory(fitted, devices).total <= budget
  if fitted.train.accumulation > 1:
    fewer = with_train(fitted, accumulation=fitted.train.accumulation - 1)
    assert plan.memory(fewer, devices).total > budget


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_more_micro_batches_never_need_more_memory(platform):
  """But for the second sum of gradients, which two need and one does not."""
  config = with_train(SMALL, batch_tokens=601 * 31)
  parts = [*range(2, 40), *range(40, 602, 11)]
  with devices.traced_for(platform):
    needed = [plan.memory(with_train(config, accumulation=n)).total for n in parts]
  assert needed == sorted(needed, reverse=True) and len(set(needed)) > 20


@pytest.mark.long
def test_fit_weighs_rematerialisation_against_micro_batches():
  config = with_train(with_model(TINY, num_layers=1), steps=1)

  def best(budget):
    fitted = plan.fit(config, budget)
    assert plan.memory(fitted).total <= budget
    return fitted.model.remat, fitted.train.accumulation

  def needed(remat, parts):
    paper = with_train(with_model(config, remat=remat), batch_tokens=410 * 61, accumulation=parts)
    return plan.memory(paper).total

  assert best(2 * needed(Remat.NONE, 1)) == (Remat.NONE, 1)
  assert needed(Remat.LAYER, 1) < needed(Remat.ATTENTION, 1) < needed(Remat.NONE, 1)
  # So small a model has few parameters to read again: micro-batches cost less than computing anything twice.
  remat, parts = best(needed(Remat.LAYER, 1))
  assert remat is Remat.NONE and parts > 1
  # At one row a part nothing is left but to keep less.
  assert best(needed(Remat.LAYER, 410))[0] is Remat.LAYER


@pytest.mark.parametrize("remat", [Remat.LAYER, Remat.ATTENTION])
def test_layers_of_each_side_take_the_memory_of_as_many_layers(remat):
  """The same model, written in two ways."""
  layers = SMALL.model.num_layers
  written = with_model(SMALL, remat=remat, num_layers=1, encoder_layers=layers, decoder_layers=layers)
  assert plan.memory(written) == plan.memory(with_model(SMALL, remat=remat))


def test_the_cost_of_memory():
  """Layers are computed forward once more; each part moves 20 bytes for each parameter."""
  output_layer = 2 * 31 * 38 * 997
  layers = transformer_flops(SMALL.model, 31) - output_layer
  again = plan.cost(with_model(SMALL, remat=Remat.LAYER)) - plan.cost(SMALL)
  assert again == 13 * layers
  parts = plan.cost(with_train(SMALL, accumulation=13)) - plan.cost(SMALL)
  assert parts == 300 * 12 * 20 * plan.parameters(SMALL)["total"]


def test_fit_says_when_nothing_fits():
  with pytest.raises(InputError, match=r"the model does not fit in 0\.50 GB: .* alone take [1-9]"):
    plan.fit(base.get_config(), 500 * 10**6)


@pytest.mark.long
def test_fit_with_short_rows():
  assert plan.fit(SMALL, 10**9).data.row_length == 31


def test_rows_longer_than_a_usual_batch():
  config = dataclasses.replace(SMALL, data=DataConfig(row_length=32768), train=TrainConfig(batch_tokens=65536))
  assert plan.flops(config).step == 3 * 2 * transformer_flops(config.model, 32768)


@pytest.mark.parametrize(
  ("text", "size"),
  [("16GB", 16 * 10**9), ("16GiB", 2**34), ("512MB", 512 * 10**6), ("2e9", 2 * 10**9), ("1.5 G", 1.5e9)],
)
def test_sizes_of_memory(text, size):
  assert plan.in_bytes(text) == size


@pytest.mark.parametrize(
  "text", ["", "GB", "-1GB", "16", "999K", "1..2GB", "16 bananas", "0", "0.5", "1e400", "1e999GB", "1e300 TB"]
)
def test_what_is_no_size_of_memory(text):
  with pytest.raises(InputError, match="is not a size of memory: write it as 16GB"):
    plan.in_bytes(text)


# The command.


@pytest.mark.long
def test_the_command_on_a_row_of_table_3(capsys):
  status = main(["plan", f"--config={CONFIGS}/table3.py:B-dk16", "--json", "--devices=8", "--rate=50e12"])
  found = json.loads(capsys.readouterr().out)
  assert status == 0
  assert found["parameters"]["total"] == 55_967_744
  assert found["memory"]["total"] == sum(
    found["memory"][part] for part in ("parameters", "optimizer", "gradients", "activations", "working")
  )
  assert found["time"]["recipe"] == pytest.approx(found["flops"]["recipe"] / (8 * 50e12))
  assert "not_measured" in found["data"]  # that of TensorFlow Datasets is read only when asked for
  assert found["table_2"] is None


@pytest.mark.long
def test_the_command_reads_for_a_person(capsys):
  assert main(["plan", f"--config={CONFIGS}/big.py", "--fit=16GB", "--platform=gpu"]) == 0
  out = capsys.readouterr().out
  assert "memory on 1 device (gpu)" in out
  assert "214,171,648" in out
  assert "Table 2 has 2.3e+19 for big: not operations done but device time,\n  84 hours of 8 P100 at 9.5 TFLOP/s" in out
  assert "--config.train.accumulation=" in out


def test_the_command_plans_for_devices_that_are_not_here(capsys):
  flags = [f"--config={CONFIGS}/multi30k.py:plain", "--no-data", "--json"]
  flags += ["--config.data.train=t", "--config.model.num_layers=1", "--config.model.dtype=bfloat16", "--fit=3GB"]
  for_a_cpu, *for_others = [
    main(["plan", *flags, *more]) or json.loads(capsys.readouterr().out)
    for more in ([], ["--platform=gpu"], ["--platform=tpu"])
  ]
  assert [found["platform"] for found in (for_a_cpu, *for_others)] == ["cpu", "gpu", "tpu"]
  # The logits of all 4,096 tokens at once, and twice; on a CPU those of 256 tokens, four times.
  assert for_a_cpu["memory"]["working"] == 4 * 256 * 9700 * 4
  for found in for_others:
    assert found["memory"]["activations"] < for_a_cpu["memory"]["activations"] / 1.3
    assert found["memory"]["working"] == 2 * 4096 * 9700 * 4
    assert found["fit"]["total"] <= 3e9


@pytest.mark.long
def test_the_command_packs_the_text(capsys, tmp_path):
  for language, word in (("en", "one two three"), ("de", "eins zwei drei")):
    (tmp_path / f"t.{language}").write_text("".join(f"{word} {i}\n" for i in range(200)) + f"{'long ' * 50}\n\n")
  flags = [
    f"--config={CONFIGS}/multi30k.py",
    f"--config.data.train={tmp_path}/t",
    "--config.model.vocab_size=300",
    f"--config.data.cache_dir={tmp_path}",
    "--config.data.row_length=32",
    "--config.train.batch_tokens=320",
    "--config.train.steps=40",
  ]
  assert main(["plan", *flags, "--json"]) == 0
  data = json.loads(capsys.readouterr().out)["data"]
  assert data["found"]["pairs"] == 200 and list(data["left_out"].values()) == [1, 1]
  assert data["steps_per_epoch"] == data["rows"] / 10
  assert data["epochs"] == 400 / data["rows"]
  assert data["padding"] == pytest.approx(1 - data["tokens"] / (2 * 32 * data["rows"]))


@pytest.mark.parametrize("flags", [[], ["--config=gpt"]])
def test_a_pipe_is_not_read(capsys, tmp_path, flags):
  for name in ("t.en", "t.de", "t"):
    os.mkfifo(tmp_path / name)
  flags = [*(flags or [f"--config={CONFIGS}/multi30k.py"]), f"--config.data.train={tmp_path}/t"]
  flags += ["--config.model.num_layers=1", "--config.model.d_model=16", "--config.model.d_ff=16"]
  message = "is a pipe, whose text can be read only once: write it to a file"
  assert main(["plan", *flags, "--json"]) == 0
  assert message in json.loads(capsys.readouterr().out)["data"]["not_measured"]
  assert main(["plan", *flags, "--data", "--json"]) == 2  # who asks for the text wants an error
  out, err = capsys.readouterr()
  assert out == "" and message in err


def test_text_that_is_not_there_is_said(capsys):
  assert main(["plan", f"--config={CONFIGS}/multi30k.py", "--config.model.num_layers=1"]) == 0
  assert (
    "data: not measured, as the text corpus to read has an empty name: set config.data.train" in capsys.readouterr().out
  )


@pytest.mark.parametrize(
  ("argv", "message"),
  [
    (["--config=nowhere.py"], "nowhere.py"),
    ([f"--config={CONFIGS}/table3.py:B-dk8"], "'B-dk8' is not a row of Table 3"),
    ([f"--config={CONFIGS}/base.py", "--config.model.nothing=3"], "config.model.nothing is not a key"),
    ([f"--config={CONFIGS}/base.py", "--fit=much"], "'much' is not a size of memory"),
    (
      [f"--config={CONFIGS}/base.py", "--config.model.num_layers=1", "--fit=100MB"],
      "the model does not fit in 0.10 GB",
    ),
    ([f"--config={CONFIGS}/base.py", "--devices=0"], "--devices and --rate must be positive numbers"),
    ([f"--config={CONFIGS}/base.py", "--rte=3"], "--rte is not a flag of `transformer-jax plan` (did you mean --rate"),
  ],
)
def test_a_mistake_ends_in_one_line_and_status_2(capsys, argv, message):
  assert main(["plan", *argv]) == 2
  [line] = capsys.readouterr().err.splitlines()
  assert line.startswith("transformer-jax: error: ")
  assert message in line


def test_a_halved_row_of_fused_attention_is_even(monkeypatch):
  """cuDNN needs it; 250 halved would be 125."""
  config = with_model(
    dataclasses.replace(SMALL, data=DataConfig(row_length=250, max_length=20)),
    fused_attention=True,
    dtype=Dtype.BFLOAT16,
    num_heads=1,
    d_k=8,
    d_v=8,
  )
  tried = []
  monkeypatch.setattr(plan, "_with_fewest_parts", lambda kind, budget, devices, length: tried.append(length))
  with pytest.raises(InputError, match="does not fit"):
    plan.fit(config, 10**12)
  assert [*dict.fromkeys(tried)] == [250, 124]
