import importlib
import signal
import sys
from pathlib import Path

import pytest

from transformer_jax import registry


@pytest.fixture
def program(monkeypatch):
  """Imports a program of `benchmarks/` by its name, with what it finds beside it, and forgets all of them after."""
  folder = Path(__file__).parents[2] / "benchmarks"
  monkeypatch.syspath_prepend(folder)
  monkeypatch.setattr(registry, "_FAMILIES", dict(registry._FAMILIES))  # a program may register one
  before, handlers = set(sys.modules), {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
  yield importlib.import_module
  for number, handler in handlers.items():  # a program may set its own
    signal.signal(number, handler)
  for name in set(sys.modules) - before:
    if Path(getattr(sys.modules[name], "__file__", None) or "").parent == folder:
      del sys.modules[name]
