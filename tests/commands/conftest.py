"""A run folder, files to translate, and a command run in this process."""

import pytest

from tests.commands.lines import LINES, text
from tests.example_commands import command_line, one_translator, translator, workdir  # noqa: F401


@pytest.fixture
def run(monkeypatch, capfdbinary, tmp_path):
  """Runs a command on some input: (status, output, lines on stderr)."""
  return command_line(monkeypatch, capfdbinary, tmp_path)


@pytest.fixture
def files(tmp_path):
  (tmp_path / "a.en").write_text(text(LINES))
  (tmp_path / "a.de").write_text(text(reversed(LINES)))
  return tmp_path
