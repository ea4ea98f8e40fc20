"""benchmarks/accelerator.py: a dry run of all its parts with tiny sizes, and the operations of its roofline."""

import dataclasses
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from transformer_jax.analysis import requirements
from transformer_jax.model.config import Dtype, ModelConfig

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "accelerator.py"
MODEL = ModelConfig(vocab_size=31, num_layers=2, d_model=22, d_ff=13, num_heads=3, d_k=5, d_v=7, dtype=Dtype.BFLOAT16)


@pytest.fixture
def on_device(program, monkeypatch):
  """Imports a part by its name."""
  monkeypatch.syspath_prepend(PROGRAM.parent / "on_device")
  yield program
  for name, module in list(sys.modules.items()):
    if (getattr(module, "__file__", None) or "").startswith(str(PROGRAM.parent / "on_device")):
      del sys.modules[name]


def test_the_rooflines_operations_are_those_of_the_plan(on_device):
  sizes, roofline = on_device("sizes"), on_device("roofline")
  rows, length = 3, 17
  config = sizes.config(MODEL, length, rows * length)
  parts = roofline.work(MODEL, rows, length, requirements.parameters(config)["total"])
  assert sum(part.operations for part in parts.values()) == requirements.flops(config).step


def test_fused_attention_moves_fewer_bytes_and_computes_as_much(on_device):
  roofline = on_device("roofline")
  fused = dataclasses.replace(MODEL, d_v=8, d_k=8, fused_attention=True)
  one, other = (roofline.work(dataclasses.replace(fused, fused_attention=x), 3, 17, 1) for x in (True, False))
  differing = {part for part in one if one[part] != other[part]}
  assert differing == {"scores and weighted values"}
  (name,) = differing
  assert one[name].operations == other[name].operations
  assert other[name].bytes - one[name].bytes == 2 * (2 * 4 + 2 * 2) * 2 * 3 * 3 * 3 * 17 * 17


def test_packed_rows_hold_pairs(on_device):
  rows = on_device("sizes").packed_rows(MODEL, 37, 11)
  assert rows.shape == (11, 4, 37) and rows[:, [0, 2]].max() < 31
  pairs = on_device("utilisation").lengths(rows)
  assert len(pairs) >= 11 and pairs.min() >= 2


def test_sentences_are_different(on_device):
  lines = on_device("sentences").sentences(2000)
  assert len(lines) == len(set(lines)) == 6 * 7 * 5 * 5


def run(file, *options):
  command = [sys.executable, str(PROGRAM), f"--json={file}", "--tiny", *options]
  done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "JAX_PLATFORMS": "cpu"})
  assert done.returncode == 0, done.stderr
  return json.loads(file.read_text())["parts"], done.stdout


@pytest.mark.long
def test_a_case_that_fails_is_said_and_the_next_goes_on(on_device, tmp_path, monkeypatch):
  part = on_device("part")
  file = tmp_path / "a.jsonl"
  cases = {"one": lambda: [{"x": 1}], "two": lambda: 1 / 0, "three": lambda: [{"x": 3}]}
  monkeypatch.setattr(sys, "argv", ["part", str(file)])
  part.run(lambda tiny: cases)
  found = [json.loads(line) for line in file.read_text().splitlines()]
  assert [(case["case"], case["failed"]) for case in found] == [("one", False), ("two", True), ("three", False)]
  assert found[1]["rows"] == [{"failed": "ZeroDivisionError: division by zero"}]
  # A second run repeats what failed, and nothing else.
  cases = {name: lambda: [{"x": 4}] for name in cases}
  part.run(lambda tiny: cases)
  assert [json.loads(line)["case"] for line in file.read_text().splitlines()] == ["one", "two", "three", "two"]
  # On another device, or with other versions, all is measured again, and what was measured before is no row.
  monkeypatch.setattr(part.devices, "describe", lambda: {"kind": "a second device"})
  part.run(lambda tiny: {name: lambda: [{"x": 5}] for name in ("three", "one")})
  monkeypatch.setattr(part.report, "context", lambda: {"versions": {"jax": "1000"}})
  part.run(lambda tiny: {name: lambda: [{"x": 6}] for name in ("one",)})
  assert [json.loads(line)["case"] for line in file.read_text().splitlines()][4:] == ["three", "one", "one"]
  assert on_device("accelerator").rows_of(tmp_path, "a") == [{"case": "one", "device": "a second device", "x": 6}]


@pytest.mark.slow
def test_a_dry_run_of_all_parts(tmp_path):
  file = tmp_path / "found.json"
  parts, printed = run(file, "--minutes=40")
  assert {name: part["ending"] for name, part in parts.items()} == dict.fromkeys(parts, "done")
  for name, part in parts.items():
    assert part["rows"] and not any("failed" in row for row in part["rows"]), name
    assert f"## {name}: done" in printed
  start = time.monotonic()
  assert run(file, "--minutes=9", "--parts", "roofline")[0]["training"] == {**parts["training"], "ending": None}
  assert time.monotonic() - start < 60  # nothing is measured again


def test_no_time_is_said(tmp_path):
  parts, printed = run(tmp_path / "found.json", "--minutes=0.1", "--parts", "checks")
  assert parts["checks"] == {"ending": "not started: no time is left", "rows": []}
  assert "## checks: not started: no time is left" in printed
