"""Each route and each status, over HTTP."""

import asyncio
import dataclasses
import re
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path

import pytest
from libretranslatepy import LibreTranslateAPI

from tests.serve.fake import Gate, fake, look, served, serving, shout
from transformer_jax.runtime.errors import RunError
from transformer_jax.serve import batcher, server
from transformer_jax.serve.app import MOST_ATTENTIONS, MOST_WEIGHTS, _language_name, application
from transformer_jax.serve.batcher import Busy
from transformer_jax.serve.concurrency_limit import ConcurrencyLimit
from transformer_jax.serve.search import Options

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
PARTS = {"Content-Type": "multipart/form-data; boundary=x"}


@pytest.fixture(scope="module")
def client():
  with serving() as client:
    yield client


def test_a_text(client):
  reply = client.translate("a house", api_key="ignored", unknown=1)
  assert (reply.status, reply.json) == (200, {"translatedText": "A HOUSE"})
  assert reply.headers["content-type"] == "application/json"


def test_an_empty_text_has_an_empty_translation(client):
  assert client.translate("").json == {"translatedText": ""}


def test_several_lines_are_translated_line_by_line(client):
  assert client.translate("a\r\nb\n\nc\rd").json == {"translatedText": "A\nB\n\nC\nD"}


def test_a_list(client):
  assert client.translate(["a", "", "b\nc"]).json == {"translatedText": ["A", "", "B\nC"]}
  assert client.translate([]).json == {"translatedText": []}


def test_alternatives(client):
  assert client.translate("a", alternatives=2).json == {"translatedText": "A", "alternatives": ["A!", "A!!"]}
  # As many as the search has: four hypotheses, of which one is the best.
  assert len(client.translate("a", alternatives=9).json["alternatives"]) == 3
  several = client.translate(["a\nb\n", ""], alternatives=1).json
  assert several == {"translatedText": ["A\nB\n", ""], "alternatives": [["A!\nB!\n"], []]}


def test_a_source_that_the_client_leaves_open(client):
  detected = {"language": "en", "confidence": 0.0}
  assert client.translate("a", source="auto").json == {"translatedText": "A", "detectedLanguage": detected}
  assert client.translate(["a", "b"], source="auto").json["detectedLanguage"] == [detected] * 2


def test_a_warning_comes_with_the_answer(client):
  assert client.translate("a\n" + "b" * 101).json["warnings"] == ["line 2 is too long"]
  assert client.translate(["a", "b", "c\n" + "d" * 101]).json["warnings"] == ["text 3, line 2 is too long"]
  several = [*["d" * 101 + "\na"] * 2, "", "d" * 101]
  assert client.translate(several).json["warnings"] == [f"text {text}, line 1 is too long" for text in (1, 2, 4)]


@pytest.mark.parametrize("several", [False, True])
def test_a_form(client, several):
  fields = [("q", "ä & b"), ("source", "en"), ("target", "de"), ("alternatives", "1"), *([("q", "c")] * several)]
  reply = client.request("POST", "/translate", urllib.parse.urlencode(fields), FORM)
  expected = {"translatedText": "Ä & B", "alternatives": ["Ä & B!"]}
  assert reply.json == (
    {"translatedText": ["Ä & B", "C"], "alternatives": [["Ä & B!"], ["C!"]]} if several else expected
  )


def test_a_form_may_have_its_text_as_it_is(client):
  """As curl sends it with -d."""
  reply = client.request("POST", "/translate", "q=ä+é ü&source=en&target=de&empty=".encode(), FORM)
  assert reply.json == {"translatedText": "Ä É Ü"}


def test_a_form_of_too_many_fields_is_refused(client):
  reply = client.request("POST", "/translate", "&".join(f"{n}=" for n in range(1001)), FORM)
  assert (reply.status, "more than 1,000 fields: send a list q as JSON" in reply.json["error"]) == (400, True)


def test_a_form_of_several_parts(client):
  parts = "".join(
    f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
    for name, value in (("q", "a"), ("source", "en"), ("target", "de"))
  )
  reply = client.request("POST", "/translate", f"{parts}--x--\r\n", PARTS)
  assert reply.json == {"translatedText": "A"}


def test_a_form_of_another_charset_is_refused(client):
  headers = {"Content-Type": "multipart/form-data; boundary=x; charset=latin-1"}
  parts = '--x\r\nContent-Disposition: form-data; name="q"\r\n\r\nü\r\n--x--\r\n'.encode()
  reply = client.request("POST", "/translate", parts, headers)
  assert (reply.status, reply.json["error"][:36]) == (400, "the request's charset is 'latin-1', ")
  headers["Content-Type"] = "multipart/form-data; boundary=x; charset=utf-8; charset=latin-1"  # the last one counts
  reply = client.request("POST", "/translate", parts, headers)
  assert (reply.status, reply.json["error"][:36]) == (400, "the request's charset is 'latin-1', ")
  headers["Content-Type"] = "multipart/form-data; boundary=x; charset=UTF-8"
  assert client.request("POST", "/translate", parts, headers).json["error"][:18] == "source is missing:"
  headers["Content-Type"] = "multipart/form-data; boundary=x; charset=us-ascii"  # Starlette would take Latin-1
  reply = client.request("POST", "/translate", parts, headers)
  assert (reply.status, reply.json["error"][:37]) == (400, "the request's charset is 'us-ascii', ")
  reply = client.request("POST", "/translate", parts.replace("ü".encode(), b"u"), headers)
  assert reply.json["error"][:18] == "source is missing:"


def test_a_long_content_type_is_refused(client):
  """Its parser takes the square of its length, and the server would answer nobody meanwhile."""
  headers = {"Content-Type": f'multipart/form-data; boundary=x; y="{";" * 60_000}'}
  reply = client.request("POST", "/translate", "--x--\r\n", headers)
  assert (reply.status, reply.json["error"][:42]) == (400, "the request's Content-Type is too long: se")


def test_a_form_that_is_not_utf_8_is_refused(client):
  """Its parser would put U+FFFD, or a character of Latin-1, in the place of the byte."""
  form = b"q=%ff&source=en&target=de"
  parts = b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\na\xff\r\n--x--\r\n'
  mixed = [(b"q=%C3\xa9&source=en&target=de", FORM), (b"q=\xc3%A9&source=en&target=de", FORM)]
  json_form = (b'{"q": "\xff"}', {"Content-Type": "application/json"})
  for body, headers in ((form, FORM), *mixed, (parts, PARTS), json_form):
    reply = client.request("POST", "/translate", body, headers)
    assert (reply.status, reply.json) == (400, {"error": "the request's body is not UTF-8: encode its text so"})


@pytest.mark.parametrize(
  ("body", "headers", "words"),
  [
    ('{"q": "a", "source": "en", "target": "de"}', FORM, "urlencoded: set it to application/json if the body is JSON"),
    ("q=a", {"Content-Type": "text/plain"}, "Content-Type is text/plain: set it to application/json"),
    (b"", {}, "Content-Type is missing: set it to application/json"),
    ("q=a", {"Content-Type": "multipart/form-data"}, "form cannot be read (Missing boundary in multipart): send text"),
    (
      '--x\r\nContent-Disposition: form-data; name="q"; filename="q.txt"\r\n\r\na\r\n--x--\r\n',
      PARTS,
      "send text in its fields, no files, or send JSON",
    ),
  ],
)
def test_a_body_of_another_type_is_told(client, body, headers, words):
  reply = client.request("POST", "/translate", body, headers)
  assert reply.status == 400 and words in reply.json["error"]


def test_languages_and_health(client):
  assert client.get("/health").json == {"status": "ok"}
  assert client.get("/languages").json == [
    {"code": "en", "name": "English", "targets": ["de"]},
    {"code": "de", "name": "German", "targets": []},
  ]


def test_a_client_from_pypi(client):
  api = LibreTranslateAPI(client.url)
  assert api.translate("Grüße\nund mehr", "en", "de") == "GRÜSSE\nUND MEHR"
  assert [language["code"] for language in api.languages()] == ["en", "de"]


@pytest.mark.parametrize(
  ("fields", "words"),
  [
    ({}, "q is missing"),
    ({"q": 7}, "q is of type int"),
    ({"q": ["a", None]}, "q[1] is missing: send a text as q[1]"),
    ({"q": "\ud800"}, "surrogate"),
    ({"q": "a"}, "source is missing"),
    ({"q": "a", "source": "en"}, "target is missing"),
    ({"q": "a", "source": "fr", "target": "de"}, "from 'en' to 'de'"),
    ({"q": "a", "source": "en", "target": "en"}, "from 'en' to 'de'"),
    ({"q": "a", "source": ["en"], "target": "de"}, "from 'en' to 'de'"),
    ({"q": "a", "source": "en", "target": "de", "format": "html"}, "plain text alone"),
    ({"q": "a", "source": "en", "target": "de", "alternatives": -1}, "alternatives is -1"),
    ({"q": "a", "source": "en", "target": "de", "alternatives": True}, "alternatives is True"),
    ({"q": "a", "source": "en", "target": "de", "alternatives": "1" * 5000}, "alternatives is '111"),
    ({"q": "a", "source": "en", "target": "de", "alternatives": "\u00b2"}, "alternatives is '\u00b2'"),
    ([], "must be a JSON object"),
  ],
)
def test_bad_input_is_400_with_a_sentence(client, fields, words):
  reply = client.post("/translate", fields)
  assert reply.status == 400 and words in reply.json["error"]


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b'{"q": NaNN}'])
def test_what_is_no_json(client, body):
  reply = client.request("POST", "/translate", body, {"Content-Type": "application/json"})
  assert reply.status == 400 and "is not JSON" in reply.json["error"]


@pytest.mark.parametrize(
  ("fields", "words"),
  [
    ({"beam_size": 0}, "beam_size is 0"),
    ({"beam_size": 17}, "beam_size is 17"),
    ({"beam_size": 2.0}, "beam_size is 2.0"),
    ({"beam_size": True}, "beam_size is True"),
    ({"length_penalty": -0.25}, "length_penalty is -0.25"),
    ({"length_penalty": 5.5}, "length_penalty is 5.5, but must be a number from 0 to 5"),
    ({"length_penalty": True}, "length_penalty is True"),
    ({"length_penalty": float("nan")}, "length_penalty is nan"),
    ({"length_penalty": "1"}, "length_penalty is '1'"),
  ],
)
def test_bad_options_are_400_with_a_sentence(client, fields, words):
  reply = client.post("/hypotheses", {"q": "a", **fields})
  assert reply.status == 400 and words in reply.json["error"]


def test_hypotheses(client):
  reply = client.post("/hypotheses", {"q": "a\n" + "b" * 101, "beam_size": 2, "length_penalty": 1})
  assert reply.json["text"] == "A\n" + "B" * 101
  assert reply.json["lines"][0] == [
    {"text": "A", "score": 0.0, "log_probability": 0.0, "tokens": 3},
    {"text": "A!", "score": -1.0, "log_probability": -2.0, "tokens": 3},
  ]
  assert reply.json["warnings"] == ["line 2 is too long"]
  assert len(client.post("/hypotheses", {"q": "a"}).json["lines"][0]) == 4


@pytest.mark.parametrize(
  ("fields", "expected"),
  [
    ({}, Options(4, 0.6, 4)),
    ({"length_penalty": 0}, Options(4, 0.0, 4)),
    ({"length_penalty": 1.75}, Options(4, 1.75, 4)),
    ({"length_penalty": 2, "beam_size": 3}, Options(3, 2.0, 3)),
  ],
)
def test_the_search_has_the_options_of_the_request_or_else_the_models(fields, expected):
  asked = []

  def translate(lines, options, warn):
    asked.append(options)
    return shout(lines, options, warn)

  with serving(translate) as client:
    assert client.post("/hypotheses", {"q": "a", **fields}).status == 200
    assert client.translate("a", alternatives=1, **fields).status == 200
  assert asked == [expected, Options(4, 0.6, 4)]  # LibreTranslate's protocol has no such fields


def test_a_request_without_options_has_those_of_a_model_with_others_than_the_config_s():
  asked = []

  def translate(lines, options, warn):
    asked.append(options)
    return shout(lines, options, warn)

  with served(application(dataclasses.replace(fake(translate), beam_size=3, length_penalty=1.25))) as client:
    assert client.post("/hypotheses", {"q": "a"}).status == client.translate("a").status == 200
  assert asked == [Options(3, 1.25, 3), Options(3, 1.25, 1)]


def test_what_the_page_is_told_of_the_model(client):
  expected = {
    "name": "fake",
    "languages": [{"code": "en", "name": "English"}, {"code": "de", "name": "German"}],
    "beam_size": 4,
    "length_penalty": 0.6,
    "most_beams": 16,
  }
  assert client.get("/model").json == expected
  assert client.post("/model", {}).status == 405


def test_the_page_may_ask_for_the_models_own_beam_and_penalty_whatever_they_are():
  model = dataclasses.replace(fake(), beam_size=19, length_penalty=0.65)
  with served(application(model)) as client:
    found = client.get("/model").json
    assert (found["beam_size"], found["most_beams"], found["length_penalty"]) == (19, 16, 0.65)
    for beam_size, status in ((19, 200), (16, 200), (17, 400)):
      reply = client.post("/hypotheses", {"q": "a", "beam_size": beam_size, "length_penalty": 0.65})
      assert reply.status == status
      if status == 200:
        assert len(reply.json["lines"][0]) == beam_size
      else:
        assert "a whole number from 1 to 16, or 19" in reply.json["error"]
  model.batcher.close()


def test_attention(client):
  found = client.post("/attention", {"source": "a b", "target": "c d e"}).json
  assert (found["kinds"], found["kind"]) == (["encoder", "decoder", "cross"], "cross")
  assert (found["queries"], found["keys"]) == ([" c", " d", " e"], [" a", " b"])
  assert found["weights"][0][0] == [[1, 0], [0, 1], [0, 1]] and len(found["weights"][1]) == 3
  own = client.post("/attention", {"source": "a b", "target": "c", "kind": "encoder"}).json
  assert own["queries"] == own["keys"] == [" a", " b"]
  wrong = client.post("/attention", {"source": "a b", "target": "c", "kind": "x"})
  assert (wrong.status, wrong.json["error"]) == (
    400,
    "kind is 'x', but this model's attention is encoder, decoder, cross",
  )
  assert client.post("/attention", {"source": "a b"}).status == 400
  assert client.post("/attention", {"source": "a b", "target": "c", "kind": ["cross"]}).status == 400


def test_other_places_and_methods(client):
  assert client.get("/translate").status == 405 and client.get("/translate").headers["allow"] == "POST"
  assert (client.get("/nix").status, client.get("/nix").json["error"][:19]) == (404, "there is no /nix: t")
  assert client.get("/page.css/../../app.py").status == 404


@pytest.mark.parametrize(
  ("q", "words"),
  [
    ("x" * 40_000, "40,000 characters"),
    (["\n" * 4_000, "\n" * 1_000], "5,000 lines"),
    ([""] * 4_097, "4,097 lines"),
    ("x" * 600_000, "bytes"),
  ],
)
def test_oversize_input_is_413(client, q, words):
  reply = client.translate(q)
  assert reply.status == 413 and words in reply.json["error"]


@pytest.mark.parametrize(
  ("text", "status", "words"),
  [
    ("x" * 32_768, 200, ""),
    ("x" * 32_769, 413, "32,769 characters, but a request may have at most 32,768"),
    ("\n" * 4_096, 200, ""),
    ("\n" * 4_096 + "x", 413, "4,097 lines, but a request may have at most 4,096"),
    ("\0" * 100_000, 413, "more than 524,288 bytes"),  # of six bytes each
  ],
  ids=["characters", "a character more", "lines", "a line more", "bytes"],
)
def test_oversize_text_of_hypotheses_is_413(client, text, status, words):
  reply = client.post("/hypotheses", {"q": text, "beam_size": 1})
  assert reply.status == status and words in reply.json.get("error", "")


@pytest.mark.parametrize(
  ("source", "target", "words"),
  [
    ("x", "y" * 32_768, "32,769 characters"),
    ("x" * 32_768, "y", "32,769 characters"),
    ("x", "\0" * 100_000, "more than 524,288 bytes"),
  ],
  ids=["target", "source", "bytes"],
)
def test_an_oversize_pair_of_attention_is_413_and_is_not_computed(source, target, words):
  asked = []
  model = dataclasses.replace(fake(), attention=lambda *pair: asked.append(pair))
  with served(application(model)) as client:
    reply = client.post("/attention", {"source": source, "target": target})
  model.batcher.close()
  assert reply.status == 413 and words in reply.json["error"] and not asked


def test_a_full_queue_is_503():
  gate = Gate()
  with serving(gate, most_waiting=1) as client, ThreadPoolExecutor(4) as executor:
    first = executor.submit(client.translate, "first")
    gate.begun.acquire()
    others = [executor.submit(client.translate, "next") for _ in range(3)]
    while sum(future.done() for future in others) < 2:
      time.sleep(0.01)
    gate.open.set()
    replies = sorted((future.result() for future in others), key=lambda reply: reply.status)
    assert [reply.status for reply in (first.result(), *replies)] == [200, 200, 503, 503]
    assert replies[2].headers["retry-after"] == "1" and "too many" in replies[2].json["error"]


@pytest.mark.parametrize(
  ("error", "words"),
  [(RunError("NaN: use another one"), "NaN: use"), (MemoryError(), "smaller beam"), (KeyError(7), "KeyError")],
)
def test_a_failure_is_500_and_the_next_request_is_answered(error, words, caplog):
  def translate(lines, options, warn):
    raise error

  with serving(translate) as client:
    for _ in range(2):
      reply = client.translate("a")
      assert reply.status == 500 and words in reply.json["error"]


def test_64_clients(client):
  def ask(number):
    return client.translate(f"text {number}", alternatives=number % 3).json["translatedText"]

  with ThreadPoolExecutor(64) as executor:
    assert list(executor.map(ask, range(192))) == [f"TEXT {number}" for number in range(192)]


def test_the_page_runs_nothing_from_elsewhere(client):
  """A browser does what the header says; the files keep to it."""
  policy = client.get("/").headers["content-security-policy"]
  assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
  for file in resources.files("transformer_jax.serve").joinpath("page").iterdir():
    text = file.read_text()
    assert client.get("/" if file.name == "index.html" else f"/{file.name}").body.decode() == text
    assert "//" not in re.sub(r"^// .*|(?<=; )// .*", "", text, flags=re.MULTILINE), file
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|style=|\son\w+=", text), file


def test_texts_are_no_html_anywhere(client):
  text = "<script>alert(1)</script>"
  for reply in (client.translate(text), client.post("/hypotheses", {"q": text}), client.translate("a", source=text)):
    assert reply.headers["content-type"] == "application/json" and reply.headers["x-content-type-options"] == "nosniff"


def test_each_field_of_the_page_has_a_label(client):
  page = client.get("/").body.decode()
  fields = re.findall(r"<(?:textarea|select|input|output)[^>]* id=\"(\w+)\"", page)
  assert len(fields) == 7 and set(fields) == set(re.findall(r'<label for="(\w+)"', page))


def test_more_requests_for_attention_than_fit_are_503():
  """Its answers are large."""
  opened = threading.Event()

  def slow(source, target):
    assert opened.wait(60)
    return look(source, target)

  model = dataclasses.replace(fake(), attention=slow)
  with served(application(model)) as client, ThreadPoolExecutor(MOST_ATTENTIONS + 3) as executor:
    asked = [
      executor.submit(client.post, "/attention", {"source": "a", "target": "b"}) for _ in range(MOST_ATTENTIONS + 3)
    ]
    while sum(future.done() for future in asked) < 3:
      time.sleep(0.01)
    opened.set()
    statuses = sorted(future.result().status for future in asked)
    assert statuses == [200] * MOST_ATTENTIONS + [503] * 3
    assert client.post("/attention", {"source": "a", "target": "b"}).status == 200  # there is room again
  model.batcher.close()


def test_an_attention_that_fails_leaves_its_room_to_the_next():
  def fails(source, target):
    raise KeyError(7)

  model, count = dataclasses.replace(fake(), attention=fails), MOST_ATTENTIONS + 1
  with served(application(model)) as client:
    statuses = [client.post("/attention", {"source": "a", "target": "b"}).status for _ in range(count)]
  assert statuses == [500] * count
  model.batcher.close()


def test_an_answer_counts_until_its_client_has_read_it():
  """A server buffers what it is sent, and only then waits for a client that reads slowly."""
  read, sent = asyncio.Event(), []

  async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"large"})

  async def send(message):
    if sent[-1:] == [(b"large", True)]:
      await read.wait()
    sent.append((message.get("body"), message.get("more_body")))

  async def two_requests():
    limited = ConcurrencyLimit(app, 1)
    first = asyncio.create_task(limited({}, None, send))
    for _ in range(10):
      await asyncio.sleep(0)
    with pytest.raises(Busy):
      await limited({}, None, send)
    read.set()
    await first
    await limited({}, None, send)

  asyncio.run(two_requests())
  assert sent == [(None, None), (b"large", True), (b"", False)] * 2


def test_what_clients_of_libretranslate_send(client):
  fields = {"q": "a", "source": "EN", "target": "De", "format": "text", "alternatives": 3, "api_key": ""}
  reply = client.post("/translate", fields)
  assert (reply.status, reply.json) == (200, {"translatedText": "A", "alternatives": ["A!", "A!!", "A!!!"]})


def test_the_limits_are_those_of_the_page_about_the_server():
  page = " ".join((Path(__file__).parents[2] / "docs" / "serve.md").read_text().split())
  for words in (
    f"{batcher._MOST_WAITING} requests wait already",
    f"asks for more than {MOST_ATTENTIONS} attentions at once",
    f"a sentence pair has more than {MOST_WEIGHTS:,} weights of attention",
    f"With {server._MOST_CONNECTIONS} open connections",
    f"up to {batcher._MOST_CHARACTERS:,} characters, and translates them in one call",
    f"must send its request within {server.SECONDS:g} seconds",
    f"less than {server.LEAST_READ >> 10} KiB in {server.SECONDS:g} seconds is dropped",
  ):
    assert words in page, words


def test_texts_of_a_form_keep_their_number_and_order(client):
  fields = (("q", "a"), ("q", ""), ("q", "b"), ("source", "en"), ("target", "de"))
  parts = "".join(f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields)
  for body, headers in ((f"{parts}--x--\r\n", PARTS), (urllib.parse.urlencode(fields), FORM)):
    assert client.request("POST", "/translate", body, headers).json == {"translatedText": ["A", "", "B"]}
  assert client.request("POST", "/translate", "q=&source=en&target=de", FORM).json == {"translatedText": ""}


@pytest.mark.parametrize(
  ("code", "name"), [("ko", "Korean"), ("pt-BR", "Portuguese (Brazil)"), ("tree", "tree"), ("a_b", "a_b")]
)
def test_a_language_has_its_english_name_or_else_its_code(code, name):
  assert _language_name(code) == name


def test_a_token_can_be_read_at_the_largest_weight():
  """The contrast of 4.5 that WCAG asks for, in the light and in the dark scheme."""
  css = resources.files("transformer_jax.serve").joinpath("page", "page.css").read_text()
  [share] = re.findall(r"var\(--shade\) calc\(var\(--weight, 0\) \* (\d+)%\)", css)

  def luminance(rgb):
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

  for scheme in css.split("@media (prefers-color-scheme: dark)"):
    named = dict(re.findall(r"--(\w+): #(\w{6});", scheme))
    shade, sheet, ink = (
      [int(named[name][i : i + 2], 16) / 255 for i in (0, 2, 4)] for name in ("shade", "sheet", "ink")
    )
    ground = [int(share) / 100 * a + (1 - int(share) / 100) * b for a, b in zip(shade, sheet, strict=True)]
    low, high = sorted((luminance(ground), luminance(ink)))
    assert (high + 0.05) / (low + 0.05) > 4.5
