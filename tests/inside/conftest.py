"""A run folder, restored and compiled once."""

import pytest

from tests.example_commands import make_run
from transformer_jax.decoding.translator import Translator


@pytest.fixture(scope="package")
def workdir(tmp_path_factory):
  """A run folder with a tiny model of random weights."""
  return str(make_run(tmp_path_factory.mktemp("run")))


@pytest.fixture(scope="package")
def translator(workdir):
  return Translator.load(workdir)


@pytest.fixture(autouse=True)
def _one_translator(monkeypatch, request):
  """Commands restore nothing again: only the folder is looked at."""
  if "run" in request.fixturenames:
    translator = request.getfixturevalue("translator")
    monkeypatch.setattr(Translator, "load", lambda run, *, step: translator)
