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


class Late:
  """A number that a device still computes: who reads it waits for two seconds."""

  def __init__(self, clock, value):
    self.clock, self.value = clock, value

  def __float__(self):
    self.clock.now += 2.0
    return self.value


def test_the_time_of_updates_ends_with_their_results_and_leaves_out_the_first_of_a_turn(program, monkeypatch):
  protocol, clock, numbers = program("protocol"), SimpleNamespace(now=0.0), []
  monkeypatch.setattr(protocol, "time", SimpleNamespace(perf_counter=lambda: clock.now))

  def update(number):
    numbers.append(number)
    clock.now += 1000.0 if number in (0, 4) else 0.5
    return Late(clock, 3.0), 7

  train = protocol.trainer(update)
  for _ in range(2):
    assert train(3) == {"seconds": 3 * 0.5 + 3 * 2.0, "target_tokens": 21, "loss": 9 / 21}
  assert numbers == list(range(8))
  assert program("rates").turn(SimpleNamespace(ask=lambda steps: {"seconds": 3.0 * steps})) == 3.0
