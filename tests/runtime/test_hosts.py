"""How hosts end together, with what the others would have said; tests/hosts starts real processes."""

import json

import jax
import pytest

from transformer_jax.runtime import hosts
from transformer_jax.runtime.errors import InputError, RunError


def test_a_value_that_differs_is_named(monkeypatch):
  monkeypatch.setattr(hosts, "gather", lambda text: [text, text, '{"a": 1, "b": 3}'])
  hosts.require_equal({"a": 1, "b": 3}, "advice")
  with pytest.raises(InputError, match=r"^b is 2 on host 0, but 3 on host 2: advice$"):
    hosts.require_equal({"a": 1, "b": 2}, "advice")


@pytest.mark.parametrize(("mistake", "kind"), [(True, InputError), (False, RunError)])
def test_the_error_of_another_host_ends_this_one(monkeypatch, mistake, kind):
  monkeypatch.setattr(hosts, "gather", lambda text: [text, json.dumps([mistake, "no text"])])
  with pytest.raises(kind, match=r"^host 1: no text$"), hosts.collective_errors():
    pass


def test_an_error_of_this_host_is_told_to_the_others(monkeypatch):
  told = []
  monkeypatch.setattr(hosts, "gather", lambda text: told.append(text) or [text])
  with pytest.raises(InputError, match=r"^my own$"), hosts.collective_errors():
    raise InputError("my own")
  assert [json.loads(text) for text in told] == [[True, "my own"]]


def test_hosts_with_other_numbers_of_devices(monkeypatch):
  devices = [["a", "b"], ["c", "d"], ["e"]]
  monkeypatch.setattr(jax, "process_count", lambda: len(devices))
  monkeypatch.setattr(jax, "local_devices", lambda process_index: devices[process_index])
  with pytest.raises(InputError, match=r"^host 0 has 2 devices, but host 2 has 1: give all hosts equally many$"):
    hosts._require_as_many_devices()
  devices.pop()
  hosts._require_as_many_devices()


LOST = ["UNKNOWN", "INTERNAL", "UNAVAILABLE", "ABORTED", "CANCELLED", "DEADLINE_EXCEEDED", "FAILED_PRECONDITION"]


@pytest.mark.parametrize("status", LOST)
def test_a_failed_exchange_is_one_sentence(monkeypatch, status):
  monkeypatch.setattr(hosts, "_peers_failed", False)
  with pytest.raises(ValueError, match=rf"^{status}: x$"), hosts.explain_peer_failure():
    raise ValueError(f"{status}: x")  # there is no other host
  monkeypatch.setattr(jax, "process_count", lambda: 2)
  lost = rf"^host 0 cannot go on, as another host ended or cannot be reached \({status}: x\): start all hosts again"
  with pytest.raises(RunError, match=lost), hosts.explain_peer_failure():
    raise ValueError(f"{status}: x")
  with pytest.raises(ValueError, match=r"^RESOURCE_EXHAUSTED: x$"), hosts.explain_peer_failure():
    raise ValueError("RESOURCE_EXHAUSTED: x")
