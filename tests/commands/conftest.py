"""A run folder, files to translate, a command run in this process, and requests to one that serves."""

import pytest

from tests.commands.lines import LINES, text
from tests.example_commands import command_line, one_translator, translator, workdir  # noqa: F401
from tests.serve.fake import served
from transformer_jax.serve import server


@pytest.fixture
def run(monkeypatch, capfdbinary, tmp_path):
  """Runs a command on some input: (status, output, lines on stderr)."""
  return command_line(monkeypatch, capfdbinary, tmp_path)


@pytest.fixture
def files(tmp_path):
  (tmp_path / "a.en").write_text(text(LINES))
  (tmp_path / "a.de").write_text(text(reversed(LINES)))
  return tmp_path


class Asking:
  """Stands for the server: asks its application, and returns instead of waiting for a signal."""

  def __init__(self, app, ask, force_exit):
    self._app, self._ask, self.force_exit = app, ask, force_exit

  def run(self, sockets):
    with served(self._app, sockets[0]) as client:
      self._ask(client)


@pytest.fixture
def asked(monkeypatch):
  """A function that says what is asked while the command serves."""
  server_of = server.server

  def while_serving(ask, force_exit=False):
    def make(app):
      monkeypatch.setattr(server, "server", server_of)
      return Asking(app, ask, force_exit)

    monkeypatch.setattr(server, "server", make)

  return while_serving
