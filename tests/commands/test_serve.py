"""`serve`: a run behind HTTP answers as `translate` does."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.commands.lines import LINES
from tests.serve.fake import served
from transformer_jax.commands.serve import BATCH_SIZE_ON_CPU
from transformer_jax.decoding.translator import Translator
from transformer_jax.serve import server


class Asking:
  """Stands for the server: asks its application, and returns instead of waiting for a signal."""

  def __init__(self, app, ask):
    self._app, self._ask = app, ask

  def run(self, sockets):
    with served(self._app, sockets[0]) as client:
      self._ask(client)


@pytest.fixture
def asked(monkeypatch):
  """A function that says what is asked while the command serves."""
  server_of = server.server

  def while_serving(ask):
    def make(app):
      monkeypatch.setattr(server, "server", server_of)
      return Asking(app, ask)

    monkeypatch.setattr(server, "server", make)

  return while_serving


@pytest.mark.long
def test_64_clients_get_what_translate_gives(run, workdir, translator, asked):
  lines = [line for line in LINES if "\n" not in line and "\r" not in line] * 4
  expected = translator.translate(lines, n_best=2, return_scores=True, batch_size=BATCH_SIZE_ON_CPU)
  answers = []

  def ask(client):
    def one(i):
      if i % 2:
        return client.translate(lines[i], alternatives=1).json["translatedText"]
      return client.post("/hypotheses", {"q": lines[i]}).json["lines"][0]

    with ThreadPoolExecutor(64) as executor:
      answers.extend(executor.map(one, range(len(lines))))

  asked(ask)
  status, output, _ = run("serve", "--workdir", workdir, "--port", "0")
  assert (status, output) == (0, "")
  assert answers == [
    best[0].text if i % 2 else [translation._asdict() for translation in best] for i, best in enumerate(expected)
  ]


@pytest.mark.parametrize(("flags", "size"), [([], BATCH_SIZE_ON_CPU), (["--batch-size", "3"], 3)])
def test_the_batch_size_is_that_of_the_flag_or_a_small_one(run, workdir, asked, monkeypatch, flags, size):
  sizes = []
  translate_lines = Translator.translate_lines

  def noted(self, lines, **options):
    sizes.append(options["batch_size"])
    return translate_lines(self, lines, **options)

  monkeypatch.setattr(Translator, "translate_lines", noted)
  asked(lambda client: client.translate(["a"]))
  assert run("serve", "--workdir", workdir, "--port", "0", *flags)[0] == 0
  assert set(sizes) == {size}


def test_long_lines_attention_and_languages(run, workdir, translator, asked):
  long = " ".join(["abc"] * 40)

  def ask(client):
    reply = client.translate(["a", long], source="ko", target="fr").json
    assert reply["translatedText"] == translator.translate(["a", long])
    assert reply["warnings"][0].startswith("text 2, line 1 has more than config.decode.max_source_length = 16 tokens")
    found = client.post("/attention", {"source": "abc", "target": "cab"}).json
    own = translator.attention("abc", "cab")
    assert (tuple(found["queries"]), tuple(found["keys"])) == (own.target, own.source)
    np.testing.assert_allclose(found["weights"], own.weights["cross"], atol=1e-4)
    assert [language["name"] for language in client.get("/languages").json] == ["Korean", "French"]

  asked(ask)
  assert run("serve", "--workdir", workdir, "--port", "0", "--source-language", "ko", "--target-language", "fr")[0] == 0


@pytest.mark.parametrize(
  ("flags", "words"),
  [
    (["--port", "65536"], "'65536' must be a number from 0 to 65535"),
    (["--beam-size", "0"], "--beam-size is 0"),
    (["--target-language", "EN"], "--source-language and --target-language are both en"),
    (["--host", "no such host"], "cannot serve at no such host, port 8000"),
    (["--host", "127..0.1"], "--host '127..0.1' is no name of a machine"),
  ],
)
def test_a_mistake_is_one_sentence(run, workdir, translator, flags, words):
  status, _, lines = run("serve", "--workdir", workdir, *flags)
  assert status in (1, 2) and len(lines) == 1 and words in lines[0]


def test_without_the_libraries_it_says_what_to_install(run, workdir, monkeypatch):
  monkeypatch.setitem(sys.modules, "uvicorn", None)
  monkeypatch.delitem(sys.modules, "transformer_jax.serve.server")
  monkeypatch.delattr("transformer_jax.serve.server")
  status, _, lines = run("serve", "--workdir", workdir)
  assert (status, lines) == (
    2,
    ["transformer-jax: error: serve needs uvicorn: run pip install 'transformer_jax[serve]'"],
  )
