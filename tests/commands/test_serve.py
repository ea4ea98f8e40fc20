"""`serve`: a run behind HTTP answers as `translate` does."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.commands.lines import LINES
from transformer_jax.commands.serve import BATCH_SIZE_ON_CPU
from transformer_jax.decoding.translation import Translation
from transformer_jax.decoding.translator import Translator
from transformer_jax.runtime import devices
from transformer_jax.serve import app, server
from transformer_jax.serve.batcher import Batcher


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


def test_an_attention_that_is_too_large_is_refused(run, workdir, asked, monkeypatch):
  monkeypatch.setattr(app, "MOST_WEIGHTS", 1)
  replies = []
  asked(lambda client: replies.append(client.post("/attention", {"source": "abc", "target": "cab"})))
  assert run("serve", "--workdir", workdir, "--port", "0")[0] == 0
  [reply] = replies
  assert reply.status == 400 and "but at most 1 are shown" in reply.json["error"]


def test_names_of_the_server_besides_localhost_are_those_of_the_flags(run, workdir, translator, asked):
  statuses = {}

  def ask(client):
    for host in ("localhost", "127.0.0.1", "box.example:8000", "BOX.lan", "other.example"):
      statuses[host] = client.get("/health", Host=host).status

  asked(ask)
  flags = ["--port", "0", "--allow-host", "Box.example", "--allow-host", "box.lan"]
  assert run("serve", "--workdir", workdir, *flags)[0] == 0
  assert statuses == dict.fromkeys(("localhost", "127.0.0.1", "box.example:8000", "BOX.lan"), 200) | {
    "other.example": 403
  }
  asked(ask)
  assert run("serve", "--workdir", workdir, "--port", "0")[0] == 0
  assert [host for host, status in statuses.items() if status == 200] == ["localhost", "127.0.0.1"]


def test_the_name_given_to_host_is_one_of_the_server(run, workdir, translator, asked, monkeypatch):
  bind, statuses = server.bind, []
  monkeypatch.setattr(server, "bind", lambda host, port: bind("127.0.0.1", 0))  # as no such name is known here
  asked(lambda client: statuses.extend(client.get("/health", Host=host).status for host in ("box.lan:8000", "other")))
  assert run("serve", "--workdir", workdir, "--host", "box.lan")[0] == 0
  assert statuses == [200, 403]


def test_without_host_only_this_machine_can_connect(run, workdir, translator, asked, monkeypatch):
  bind, addresses = server.bind, []

  def noted(host, port):
    bound = bind(host, port)
    addresses.append(bound.getsockname()[0])
    return bound

  monkeypatch.setattr(server, "bind", noted)
  asked(lambda client: None)
  assert run("serve", "--workdir", workdir, "--port", "0")[0] == 0
  assert addresses == ["127.0.0.1"]


@pytest.mark.parametrize("forced", [False, True])
def test_who_ends_it_by_force_waits_for_no_answer(run, workdir, translator, asked, monkeypatch, forced):
  given, close = [], Batcher.close

  def noted(self, **options):
    given.append(options)
    close(self)

  monkeypatch.setattr(Batcher, "close", noted)
  asked(lambda client: None, forced)
  assert run("serve", "--workdir", workdir, "--port", "0")[0] == 0
  assert given == [{"answer": not forced}]


@pytest.mark.parametrize(
  ("flags", "expected"), [([], (2, 0.6)), (["--beam-size", "3", "--length-penalty", "0.7"], (3, 0.7))]
)
def test_the_page_is_told_of_the_run_and_the_flags(run, workdir, translator, asked, flags, expected):
  found = []
  asked(lambda client: found.append(client.get("/model").json))
  assert run("serve", "--workdir", workdir, "--port", "0", *flags)[0] == 0
  assert (found[0]["beam_size"], found[0]["length_penalty"]) == expected
  assert found[0]["name"] == Path(workdir).name and [each["code"] for each in found[0]["languages"]] == ["en", "de"]


def test_a_request_may_have_another_length_penalty_but_not_another_patience(
  run, workdir, translator, asked, monkeypatch
):
  given = []

  def noted(self, lines, **options):
    given.append({name: options.get(name) for name in ("length_penalty", "patience", "beam_size", "n_best")})
    return iter([[Translation("a", 0.0, 0.0, 1)] for _ in lines])

  def ask(client):
    given.clear()  # of the check of the flags
    client.post("/hypotheses", {"q": "a", "length_penalty": 1.3, "patience": 7})
    client.translate("a")

  monkeypatch.setattr(Translator, "translate_lines", noted)
  asked(ask)
  flags = ["--port", "0", "--length-penalty", "0.7", "--patience", "0.5"]
  assert run("serve", "--workdir", workdir, *flags)[0] == 0
  assert given == [
    {"length_penalty": 1.3, "patience": 0.5, "beam_size": 2, "n_best": 2},
    {"length_penalty": 0.7, "patience": 0.5, "beam_size": 2, "n_best": 1},
  ]


@pytest.mark.parametrize(
  ("flags", "words"),
  [
    (["--port", "65536"], "'65536' must be a number from 0 to 65535"),
    (["--port", "0", "--beam-size", "0"], "--beam-size is 0"),
    (["--port", "0", "--target-language", "EN"], "--source-language and --target-language are both en"),
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


def test_on_an_accelerator_the_batch_size_is_by_length_and_memory(run, workdir, translator, asked, monkeypatch):
  sizes = []

  def noted(self, lines, **options):
    sizes.append(options["batch_size"])
    return iter([[Translation("a", 0.0, 0.0, 1)] for _ in lines])

  monkeypatch.setattr(Translator, "translate_lines", noted)
  monkeypatch.setattr(devices, "on_cpu", lambda: False)
  asked(lambda client: client.translate("a"))
  assert run("serve", "--workdir", workdir, "--port", "0")[0] == 0
  assert set(sizes) == {None}
