"""benchmarks/rates.py: where the rates are measured."""

import sys
from types import SimpleNamespace

import pytest

from transformer_jax.config import Config


@pytest.mark.parametrize(("given", "expected"), [(None, ""), ("cpu", "cpu")])
def test_a_rate_is_measured_on_the_device_of_train(program, tmp_path, monkeypatch, given, expected):
  """A program of the speed benchmarks has the CPU, unless its user says otherwise."""
  rates, environments = program("rates"), []

  def popen(command, *, env, **_):
    environments.append(env)
    return SimpleNamespace(stdout=SimpleNamespace(readline=lambda: "{}"))

  monkeypatch.setattr(sys.modules["side"].subprocess, "Popen", popen)
  monkeypatch.delenv("JAX_PLATFORMS")
  if given:
    monkeypatch.setenv("JAX_PLATFORMS", given)
  (tmp_path / "tokenizer.model").write_bytes(b"")
  rates.side("plain", Config(), tmp_path / "plain")
  [environment] = environments
  assert environment["JAX_PLATFORMS"] == expected and environment["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
