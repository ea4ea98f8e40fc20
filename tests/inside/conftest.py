"""A run folder, restored and compiled once, and a command on it; the module that draws, and its command."""

import importlib

import pytest

from tests.example_commands import command_line, one_translator, translator, workdir  # noqa: F401


@pytest.fixture
def run(request, workdir, translator, monkeypatch, capfdbinary, tmp_path):  # noqa: F811
  """The command of the test's module, on the run folder."""
  command = command_line(monkeypatch, capfdbinary, tmp_path)
  return lambda *argv: command(*request.module.COMMAND, "--workdir", workdir, *argv)


@pytest.fixture
def picture(request):
  """The module that draws, where matplotlib is installed: `test_head_picture` has `head_picture`."""
  pytest.importorskip("matplotlib")
  return importlib.import_module(request.module.__name__.replace("tests.inside.test_", "transformer_jax.inside."))


@pytest.fixture
def command(monkeypatch, capfdbinary, tmp_path):
  """The command `draw`."""
  run = command_line(monkeypatch, capfdbinary, tmp_path)
  return lambda *argv: run("draw", *argv)
