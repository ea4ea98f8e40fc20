"""A run folder, restored and compiled once, and a command on it."""

import pytest

from tests.example_commands import command_line, translator, workdir  # noqa: F401
from transformer_jax.decoding.translator import Translator


@pytest.fixture(autouse=True)
def _one_translator(monkeypatch, request):
  """Commands restore nothing again: only the folder is looked at."""
  if "run" in request.fixturenames:
    translator = request.getfixturevalue("translator")
    monkeypatch.setattr(Translator, "load", lambda run, *, step: translator)


@pytest.fixture
def run(request, workdir, monkeypatch, capfdbinary, tmp_path):  # noqa: F811
  """The command of the test's module, on the run folder."""
  command = command_line(monkeypatch, capfdbinary, tmp_path)
  return lambda *argv: command(*request.module.COMMAND, "--workdir", workdir, *argv)
