"""A run folder, restored and compiled once, and a command on it."""

import pytest

from tests.example_commands import command_line, one_translator, translator, workdir  # noqa: F401


@pytest.fixture
def run(request, workdir, translator, monkeypatch, capfdbinary, tmp_path):  # noqa: F811
  """The command of the test's module, on the run folder."""
  command = command_line(monkeypatch, capfdbinary, tmp_path)
  return lambda *argv: command(*request.module.COMMAND, "--workdir", workdir, *argv)
