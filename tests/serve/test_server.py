"""Slow clients, clients that leave, and the end by a signal."""

import contextlib
import http.client
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.serve.fake import Client, Gate, application, fake, served, serving, shout
from transformer_jax.decoding.translation import Translation
from transformer_jax.runtime.errors import RunError
from transformer_jax.serve import server

HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BODY = b'{"q": "a", "source": "en", "target": "de"}'


def seconds_until_closed(connection: socket.socket, pieces: list[bytes]) -> float:
  """Sends the pieces slowly, and waits until the server closes."""
  begun = time.monotonic()
  connection.settimeout(30)
  try:
    for piece in pieces:
      connection.sendall(piece)
      time.sleep(0.02)
    while connection.recv(1 << 16):
      pass
  except OSError:
    pass
  return time.monotonic() - begun


@pytest.mark.parametrize(
  "sent",
  [
    [],
    [HEAD, b"X: ", *[b"x"] * 500],
    [HEAD + b"Content-Length: 50000\r\n\r\n", *[b" "] * 500],
  ],
  ids=["nothing", "head", "body"],
)
def test_a_slow_client_is_left(sent, monkeypatch):
  """Also one that sends a byte again and again, for ten seconds."""
  monkeypatch.setattr(server, "SECONDS", 0.3)
  with serving() as client, socket.create_connection(("127.0.0.1", client.port)) as slow:
    assert 0.2 < seconds_until_closed(slow, sent) < 8
    assert client.translate("b").json == {"translatedText": "B"}


@pytest.mark.parametrize("size", [1 << 24, 140_000])
def test_a_client_that_does_not_read_is_left(monkeypatch, size):
  """The answer is too large for the buffers between the two, by much and by less than 64 KiB."""
  monkeypatch.setattr(server, "SECONDS", 0.3)
  lost, connection_lost = threading.Event(), server.Connection.connection_lost

  def noticed(connection, exc):
    connection_lost(connection, exc)
    lost.set()

  def much(lines, options, warn):
    return [[Translation("x" * size, 0.0, 0.0, 3)] for _ in lines]

  monkeypatch.setattr(server.Connection, "connection_lost", noticed)
  request = HEAD + f"Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY
  with serving(much) as client, socket.socket() as slow:
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect(("127.0.0.1", client.port))
    slow.sendall(request)
    assert lost.wait(5)


def test_a_client_must_read_a_part_of_its_answer_in_each_period():
  unread, looks, ends = [3 << 16], [], []
  connection = object.__new__(server.Connection)
  connection.loop = SimpleNamespace(call_later=lambda seconds, look: looks.append((seconds, look)))
  connection.transport = SimpleNamespace(get_write_buffer_size=lambda: unread[-1], abort=lambda: ends.append(True))
  connection._watch_reading()
  for left, is_left in ((2 << 16, False), ((1 << 16) + 1, True)):  # 64 KiB are enough, and a byte less is not
    unread.append(left)
    looks[-1][1]()
    assert bool(ends) == is_left
  assert [seconds for seconds, _ in looks] == [server.SECONDS] * 2


def test_a_connection_is_kept_after_an_answer_that_had_to_wait(monkeypatch):
  """The time to read an answer ends with it, and does not cut the next one."""
  monkeypatch.setattr(server, "SECONDS", 0.3)
  size = 1 << 22

  def much(lines, options, warn):
    return [[Translation("x" * size, 0.0, 0.0, 3)] for _ in lines]

  with serving(much) as client:
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=30)
    for _ in range(2):
      connection.request("POST", "/translate", BODY, {"Content-Type": "application/json"})
      time.sleep(0.1)  # the server cannot write all of it
      assert len(connection.getresponse().read()) > size
      time.sleep(1.0)
    connection.close()


def test_a_server_with_many_connections_refuses_more(monkeypatch):
  monkeypatch.setattr(server, "_MOST_CONNECTIONS", 3)
  with serving() as client:
    idle = [socket.create_connection(("127.0.0.1", client.port)) for _ in range(3)]
    until(lambda: client.get("/health").status == 503)
    idle.pop().close()
    idle.pop().close()
    until(lambda: client.get("/health").status == 200)
    idle.pop().close()


def test_a_slow_model_is_waited_for(monkeypatch):
  monkeypatch.setattr(server, "SECONDS", 0.2)

  def slowly(lines, options, warn):
    time.sleep(0.6)
    return shout(lines, options, warn)

  with serving(slowly) as client:
    assert client.translate("a").json == {"translatedText": "A"}


def until(condition):
  """The first value of a condition that is true."""
  end = time.monotonic() + 60
  while not (found := condition()):
    assert time.monotonic() < end
    time.sleep(0.01)
  return found


def test_a_request_whose_client_has_left_is_not_translated():
  gate = Gate()
  model = fake(gate)
  with served(application(model)) as client, ThreadPoolExecutor(1) as executor:
    first = executor.submit(client.translate, "first")
    gate.begun.acquire()
    with socket.create_connection(("127.0.0.1", client.port)) as leaving:
      leaving.sendall(HEAD + f"Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY)
      [waiting] = until(lambda: [job.future for job in list(model.batcher._jobs)])
    assert until(waiting.cancelled)
    gate.open.set()
    assert first.result().json == {"translatedText": "FIRST"}
    assert client.translate("last").json == {"translatedText": "LAST"}
  assert gate.calls == [["first"], ["last"]]
  model.batcher.close()


def test_a_port_in_use_is_one_sentence():
  with server.bind("127.0.0.1", 0) as first:
    first.listen()
    port = first.getsockname()[1]
    with pytest.raises(RunError, match=f"cannot serve at 127.0.0.1, port {port}: .*choose another --port"):
      server.bind("127.0.0.1", port)


def test_so_is_a_port_that_another_server_takes_meanwhile():
  """Linux lets both bind it, as long as neither listens: the model is loaded in between."""
  with server.bind("127.0.0.1", 0) as first:
    port = first.getsockname()[1]
    with server.bind("127.0.0.1", port) as second:
      first.listen()
      model = fake()
      with pytest.raises(RunError, match=f"cannot serve at 127.0.0.1, port {port}: .*choose another --port"):
        server.server(application(model)).run(sockets=[second])
      model.batcher.close()


def test_an_address_of_ipv6_is_written_in_brackets():
  class Bound:
    def getsockname(self):
      return "::1", 8000, 0, 0

  assert server.url(Bound()) == "http://[::1]:8000/"


PROGRAM = """
import signal, sys, threading, time
from tests.serve.fake import fake, shout
from transformer_jax.serve import server
from transformer_jax.serve.app import application

def slowly(lines, options, warn):
  print("begun", flush=True)
  time.sleep(float(sys.argv[1]))
  return shout(lines, options, warn)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
bound = server.bind("127.0.0.1", 0)
print(bound.getsockname()[1], flush=True)
model = fake(slowly)
running = server.server(application(model))
try:
  running.run(sockets=[bound])
finally:
  model.batcher.close(answer=not running.force_exit)
"""


@contextlib.contextmanager
def serving_for(seconds):
  """The program, whose model takes so many seconds for each call; it is killed if it has not ended."""
  with subprocess.Popen(
    [sys.executable, "-c", PROGRAM, str(seconds)],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    cwd=Path(__file__).parents[2],
  ) as process:
    try:
      yield process
    finally:
      process.kill()


@pytest.mark.long
def test_a_second_ctrl_c_ends_it_at_once():
  with ThreadPoolExecutor(2) as executor, serving_for(60) as process:
    assert process.stdout and process.stderr
    client = Client(int(process.stdout.readline()))
    process.stderr.readline()
    answers = [executor.submit(client.translate, "first")]
    process.stdout.readline()
    answers.append(executor.submit(client.translate, "second"))
    for _ in range(2):
      time.sleep(0.5)
      process.send_signal(signal.SIGINT)
    assert process.wait(20) != 0
    assert all(answer.exception() for answer in answers)
    assert "ASGI" not in process.stderr.read()


@pytest.mark.long
@pytest.mark.parametrize(
  ("number", "status"), [(signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGINT, -signal.SIGINT)]
)
def test_a_signal_ends_it_after_the_last_answer(number, status):
  """Requests that are decoded and requests that wait."""
  with ThreadPoolExecutor(3) as executor, serving_for(2) as process:
    assert process.stdout and process.stderr
    client = Client(int(process.stdout.readline()))
    process.stderr.readline()  # the address: it listens
    answers = [executor.submit(client.translate, "first")]
    process.stdout.readline()
    answers += [executor.submit(client.translate, "second", alternatives=count) for count in (0, 1)]
    time.sleep(1)  # until they have reached it
    process.send_signal(number)
    assert [answer.result().json["translatedText"] for answer in answers] == ["FIRST", "SECOND", "SECOND"]
    assert process.wait(60) == status, process.stderr.read()
    with pytest.raises(ConnectionRefusedError):
      client.get("/health")


def test_the_second_of_two_requests_in_one_piece_is_watched(monkeypatch):
  """Its body never ends, and nothing more is sent: neither the connection nor the server waits for it."""
  monkeypatch.setattr(server, "SECONDS", 0.3)
  first, second = (HEAD + f"Content-Length: {size}\r\n\r\n".encode() + BODY for size in (len(BODY), 50000))
  with serving() as client, socket.create_connection(("127.0.0.1", client.port)) as slow:
    assert 0.2 < seconds_until_closed(slow, [first + second]) < 20


@pytest.mark.long
def test_a_long_answer_that_is_read_slowly_is_whole(monkeypatch):
  monkeypatch.setattr(server, "SECONDS", 1.0)
  size = 1 << 24

  def much(lines, options, warn):
    return [[Translation("x" * size, 0.0, 0.0, 3)] for _ in lines]

  with serving(much) as client, socket.create_connection(("127.0.0.1", client.port)) as slow:
    slow.settimeout(30)
    slow.sendall(HEAD + f"Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY)
    begun, found = time.monotonic(), 0
    while found < size:
      part = slow.recv(1 << 18)
      assert part, f"closed after {found} bytes"
      found += len(part)
      time.sleep(0.04)
    assert time.monotonic() - begun > 2.0  # twice as long as a client may read nothing


def test_a_client_that_leaves_in_its_body_is_no_failure(caplog):
  caplog.set_level("ERROR", "uvicorn.error")
  with serving() as client:
    with socket.create_connection(("127.0.0.1", client.port)) as leaving:
      leaving.sendall(HEAD + b"Content-Length: 500\r\n\r\n" + BODY)
      time.sleep(0.2)
    time.sleep(0.2)
    assert client.translate("b").json == {"translatedText": "B"}
  assert not [record for record in caplog.records if record.name == "uvicorn.error"]
