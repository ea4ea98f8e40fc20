"""A run folder, files to translate, and a command run in this process."""

import pytest

from tests.commands.lines import LINES, text
from tests.example_commands import command_line, translator, workdir  # noqa: F401
from transformer_jax.decoding.translator import Translator


@pytest.fixture(autouse=True)
def _one_translator(monkeypatch, request):
  """Restores and compiles once: only the folder is looked at again."""
  if "translator" in request.fixturenames:
    translator = request.getfixturevalue("translator")
    monkeypatch.setattr(Translator, "load", lambda run, *, step: translator)


@pytest.fixture
def run(monkeypatch, capfdbinary, tmp_path):
  """Runs a command on some input: (status, output, lines on stderr)."""
  return command_line(monkeypatch, capfdbinary, tmp_path)


@pytest.fixture
def files(tmp_path):
  (tmp_path / "a.en").write_text(text(LINES))
  (tmp_path / "a.de").write_text(text(reversed(LINES)))
  return tmp_path
