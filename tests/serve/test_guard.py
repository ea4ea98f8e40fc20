"""Which requests are refused before anything reads them."""

import socket
from contextlib import suppress

import pytest

from tests.serve.fake import serving


@pytest.fixture(scope="module")
def client():
  with serving(hosts=["Box.example", "other.example.:8000", "::", "fd00::5"]) as client:
    yield client


@pytest.mark.parametrize(
  ("host", "known"),
  [
    ("localhost", True),
    ("LOCALHOST:8000", True),
    ("127.0.0.1:8000", True),
    ("192.0.2.7", True),
    ("[::1]:8000", True),
    ("box.example:80", True),
    ("other.example", True),
    ("evil.example", False),
    ("localhost.evil.example", False),
    ("127.0.0.1.evil.example", False),
    ("evil.example:8000", False),
    ("", False),
    (":8000", False),
    ("fd00:8000", False),
    ("[evil", False),
  ],
)
def test_a_name_that_was_rebound_is_refused(client, host, known):
  """An attacker's name may lead to this machine, but an address cannot be an attacker's."""
  reply = client.get("/health", Host=host)
  assert reply.status == (200 if known else 403) and ("error" in reply.json) != known


def test_a_request_without_a_host_is_told_what_is_missing(client):
  reply = client.get("/health", Host="")
  assert reply.json["error"] == "the request names no host: give it the header Host, such as localhost"


@pytest.mark.parametrize(
  ("origin", "own"),
  [
    ("http://localhost:8000", True),
    ("https://localhost:8000", True),
    ("http://localhost", False),
    ("http://evil.example", False),
    ("null", False),
    ("", False),
    ("http://[", False),
  ],
)
def test_a_page_of_another_site_is_refused(client, origin, own):
  reply = client.post("/hypotheses", {"q": "a"}, Host="localhost:8000", Origin=origin)
  assert reply.status == (200 if own else 403)


HEADERS = {
  "content-security-policy": (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
  ),
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
}


@pytest.mark.parametrize("path", ["/", "/page.js", "/health", "/nix", "/translate"])
def test_every_answer_has_the_headers(client, path):
  for headers in (client.get(path).headers, client.get(path, Host="evil.example").headers):
    assert {name: headers[name] for name in HEADERS} == HEADERS
    assert "access-control-allow-origin" not in headers


def test_an_unexpected_error_has_the_headers_of_every_answer():
  def fail(lines, options, warn):
    raise KeyError("x")

  with serving(fail) as client:
    reply = client.translate("a")
  assert reply.status == 500 and reply.headers["x-content-type-options"] == "nosniff"
  assert reply.headers["content-security-policy"].startswith("default-src 'none'")


def test_a_body_that_is_too_large_is_read_to_its_end_for_its_answer(client):
  """Many clients read no answer before they have sent all."""
  reply = client.translate("x" * 12_000_000)
  assert reply.status == 413 and "more than 524,288 bytes" in reply.json["error"]
  assert reply.headers["connection"] == "close"


def test_a_body_without_an_end_is_not_read_for_ever(client):
  piece, sent = b"100000\r\n" + b"x" * (1 << 20) + b"\r\n", 0
  with socket.create_connection(("127.0.0.1", client.port)) as connection, suppress(OSError):
    connection.settimeout(30)
    connection.sendall(b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n")
    connection.sendall(b"Content-Type: application/json\r\n\r\n")
    while sent < 64:
      connection.sendall(piece)
      sent += 1
  assert 16 <= sent < 64
