"""The plan, and the command that prints it."""

import dataclasses
import json
import os
import re
from pathlib import Path

import pytest

from configs import base, big, multi30k
from tests.analysis.examples import SMALL, TINY, with_model, with_train
from transformer_jax.__main__ import main
from transformer_jax.analysis import plan, plan_report, requirements
from transformer_jax.config import DataConfig, serialization
from transformer_jax.data import pipeline
from transformer_jax.model.config import Dtype, Remat

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.mark.long
def test_fused_attention_is_planned_as_plain_attention_without_a_gpu():
  config = with_model(dataclasses.replace(TINY, data=DataConfig(row_length=62)), dtype=Dtype.BFLOAT16)
  assert plan.build_report(with_model(config, fused_attention=True)) == plan.build_report(config)


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
def test_all_of_the_plan_is_for_the_devices(monkeypatch):
  given = []
  monkeypatch.setattr(plan.fit, "fit", lambda config, budget, devices=1: given.append(devices))
  found = plan.build_report(SMALL, 5, 1e12, 10**9)
  assert given == [5]
  assert found["memory"]["total"] == requirements.memory(SMALL, 5).total < requirements.memory(SMALL).total
  assert found["flops"]["step"] == requirements.flops(SMALL, 5).step
  assert found["time"]["step"] == found["flops"]["step"] / 5e12
  assert found["flops"]["six_n_d_recipe"] == requirements.flops(SMALL, 5).six_n_d * SMALL.train.steps


@pytest.mark.long
def test_what_training_refuses_is_not_planned(capsys):
  flags = ["--config.data.row_length=2", "--config.train.batch_tokens=2", "--config.train.accumulation=2"]
  assert main(["plan", f"--config={CONFIGS}/base.py", *flags]) == 2
  assert "config.train.accumulation is 2, but must be at most 1, the rows of a batch" in capsys.readouterr().err


@pytest.mark.long
def test_the_command_reads_for_a_person(capsys):
  assert main(["plan", f"--config={CONFIGS}/big.py", "--fit=16GB", "--platform=gpu", "--rate=50e12"]) == 0
  out = capsys.readouterr().out
  assert "memory on 1 device (gpu)" in out
  assert "214,171,648" in out
  assert "Table 2 has 2.3e+19 for big: not operations done but device time,\n  84 hours of 8 P100 at 9.5 TFLOP/s" in out
  assert "--config.train.accumulation=" in out
  operations = float(re.search(r"padding included +\S+ +(\S+)\n", out)[1])
  days, hours = map(int, re.search(r"the whole run +(\d+) days (\d+) hours?\n", out).groups())
  assert 24 * days + hours == pytest.approx(operations / 50e12 / 3600, rel=0.006)  # three digits of it are printed
  assert "25,088 tokens per side (the paper's batch has 25,000) in 16.00 GB on each device, of which they take" in out


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


@pytest.mark.long
def test_epochs_of_random_pieces_are_those_of_training(tmp_path):
  for language, word in (("en", "seven eleven"), ("de", "sieben elf dreizehn")):
    (tmp_path / f"t.{language}").write_text("".join(f"{word} {i}\n" for i in range(211)))
  config = multi30k.get_config()
  files = {"train": str(tmp_path / "t"), "cache_dir": str(tmp_path)}
  data = dataclasses.replace(config.data, **files, row_length=32, bpe_dropout=0.3)
  model = dataclasses.replace(config.model, vocab_size=400)
  train = dataclasses.replace(config.train, batch_tokens=320, steps=40)
  config = dataclasses.replace(config, data=data, model=model, train=train)
  found = plan.data(config)
  epoch = [len(rows) for rows in pipeline.packing_ahead(data, pipeline.learn_tokenizer(data, 400), train.seed)(0)]
  assert found["rows_per_epoch"] == sum(epoch) > 1.2 * found["rows"]
  assert found["epochs"] == 400 / sum(epoch) and found["steps_per_epoch"] == sum(epoch) / 10


@pytest.mark.parametrize("flags", [[], ["--config=gpt"], ["--config=text", "--config.data.tags=true"]])
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
    ([f"--config={CONFIGS}/base.py", "--devices=0"], "--devices is 0, but must be from 1 to 1048576"),
    ([f"--config={CONFIGS}/base.py", f"--devices={10**400}"], "but must be from 1 to 1048576"),
    ([f"--config={CONFIGS}/base.py", "--rate=inf"], "--rate is inf, but must be from 1 to 1e+30"),
    ([f"--config={CONFIGS}/base.py", "--rate=1e-320"], "--rate is 1e-320, but must be from 1 to 1e+30"),
    ([f"--config={CONFIGS}/base.py", "--rte=3"], "--rte is not a flag of `transformer-jax plan` (did you mean --rate"),
  ],
)
def test_a_mistake_ends_in_one_line_and_status_2(capsys, argv, message):
  assert main(["plan", *argv]) == 2
  [line] = capsys.readouterr().err.splitlines()
  assert line.startswith("transformer-jax: error: ")
  assert message in line


def test_the_flags_of_what_fits_give_its_config():
  fitted = with_train(with_model(TINY, remat=Remat.LAYER), batch_tokens=410 * 59, accumulation=7)
  fitted = dataclasses.replace(fitted, data=dataclasses.replace(TINY.data, row_length=59))
  assert serialization.changed(TINY, plan._flags(fitted)) == fitted


def test_each_number_of_the_text_stands_by_its_name():
  rates = {"padding": 0.125, "rows_per_epoch": 83, "steps_per_epoch": 8.3, "epochs": 4.7}
  data = {"found": {"pairs": 2000}, "rows": 71, "left_out": {"pairs skipped": 3}, **rates}
  _, *lines = plan_report._data({"data": data})
  assert dict(re.split("  +", line.strip()) for line in lines) == {
    **{"pairs": "2,000", "rows": "71", "pairs skipped": "3", "padding": "12.5%"},
    **{"rows of an epoch with random pieces": "83", "steps per epoch": "8.3", "epochs of the whole run": "4.7"},
  }


def test_each_number_of_memory_operations_and_time_stands_by_its_name():
  names = ("parameters", "optimizer", "gradients", "activations", "working", "total")
  memory = {name: number * 1e9 for number, name in enumerate(names, 1)}
  found = {"devices": 8, "platform": "tpu", "row_length": 61, "steps": 1009, "memory": memory | {"rows_at_a_time": 17}}
  found |= {"flops": {"step": 2e12, "recipe": 3e15, "six_n_d": 5e12, "six_n_d_recipe": 7e15}, "table_2": "base"}
  found |= {"time": {"rate": 6e13, "step": 0.25, "recipe": 7260.0}}
  lines = [line for part in (plan_report._memory, plan_report._operations, plan_report._time) for line in part(found)]
  assert [re.split("  +", line.strip()) for line in lines] == [
    ["memory on each of 8 devices (tpu), 17 rows of 61 at a time"],
    *([name, f"{number}.00 GB"] for number, name in enumerate(names, 1)),
    ["floating-point operations, of a step and of 1,009 steps"],
    ["matmuls, padding included", "2e+12", "3e+15"],
    ["6 N D, the usual estimate", "5e+12", "7e+15"],
    ["Table 2 has 3.3e+18 for base: not operations done but device time,"],
    ["12 hours of 8 P100 at 9.5 TFLOP/s, which is 3.28e+18"],
    ["time at 6e+13 operations/s on each of 8 devices"],
    ["a step", "0.250 s"],
    ["the whole run", "2 hours 1 minute"],
  ]


@pytest.mark.parametrize(
  ("config", "changes", "row"),
  [(base, {}, "base"), (big, {}, "big"), (big, {"decoder_layers": 5}, None), (base, {"d_ff": 1024}, None)],
)
def test_a_row_of_table_2_is_known_by_its_sizes(config, changes, row):
  assert plan._row_of_table_2(dataclasses.replace(config.get_config().model, **changes)) == row
