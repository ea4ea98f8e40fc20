"""A model without weights behind the real server, and requests to it."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from transformer_jax.decoding.attention import Attention
from transformer_jax.decoding.line_warning import LineWarning
from transformer_jax.decoding.translation import Translation
from transformer_jax.serve import server
from transformer_jax.serve.app import Served, application
from transformer_jax.serve.batcher import Batcher
from transformer_jax.serve.libretranslate import Languages
from transformer_jax.serve.search import Options, Translate

LANGUAGES = Languages("en", "de")


def shout(lines: Sequence[str], options: Options, warn: Callable[[LineWarning], object]) -> list[list[Translation]]:
  """The line in capitals, then with more and more exclamation marks; a long line has a warning."""
  for number, line in enumerate(lines, 1):
    if len(line) > 100:
      warn(LineWarning(number, "is too long"))
  return [
    [Translation(line.upper() + "!" * rank, -float(rank), -2.0 * rank, 3) for rank in range(options.n_best)]
    if line
    else [Translation("", 0.0, 0.0, 0)]
    for line in lines
  ]


def look(source: str, target: str) -> Attention:
  """Two layers with three heads: head h of layer l looks at the word l + h after its own, or else at the last."""
  keys, queries = (tuple(f" {word}" for word in text.split()) for text in (source, target))
  weights = {}
  for kind, (rows, columns) in {
    "encoder": (keys, keys),
    "decoder": (queries, queries),
    "cross": (queries, keys),
  }.items():
    weights[kind] = np.zeros((2, 3, len(rows), len(columns)), np.float32)
    for layer, head, query in np.ndindex(2, 3, len(rows)):
      weights[kind][layer, head, query, min(query + layer + head, len(columns) - 1)] = 1
  return Attention(keys, queries, queries, weights)


def fake(translate: Translate = shout, **options: int) -> Served:
  """A model of which this function translates."""
  return Served("fake", translate, look, Batcher(**options), LANGUAGES, 4, 0.6)


class Reply(NamedTuple):
  status: int
  headers: dict[str, str]
  body: bytes

  @property
  def json(self) -> Any:
    return json.loads(self.body)


class Client:
  """Sends requests to a port of this machine, each on a connection of its own."""

  def __init__(self, port: int):
    self.port = port
    self.url = f"http://127.0.0.1:{port}"

  def request(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
    connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
    try:
      connection.request(method, path, body, headers or {})
      response = connection.getresponse()
      return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
    finally:
      connection.close()

  def get(self, path: str, **headers: str) -> Reply:
    return self.request("GET", path, headers=headers)

  def post(self, path: str, fields: object, **headers: str) -> Reply:
    return self.request("POST", path, json.dumps(fields), {"Content-Type": "application/json", **headers})

  def translate(self, q: object, **fields: object) -> Reply:
    return self.post("/translate", {"q": q, "source": "en", "target": "de", **fields})


@contextmanager
def served(app: Any, bound: Any = None) -> Iterator[Client]:
  """An application at a free port, until the end of the body."""
  bound = bound or server.bind("127.0.0.1", 0)
  running = server.server(app)
  thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]})
  thread.start()
  try:
    while not running.started:
      time.sleep(0.001)
    yield Client(bound.getsockname()[1])
  finally:
    running.should_exit = True
    thread.join()


@contextmanager
def serving(translate: Translate = shout, most_waiting: int = 256, hosts: Sequence[str] = ()) -> Iterator[Client]:
  """A server with this function as its model."""
  model = fake(translate, most_waiting=most_waiting)
  with served(application(model, hosts)) as client:
    yield client
  model.batcher.close()


class Gate:
  """A model that waits for `open` before it translates, and keeps the lines of each call."""

  def __init__(self):
    self.calls: list[list[str]] = []
    self.begun = threading.Semaphore(0)
    self.open = threading.Event()

  def __call__(self, lines: Sequence[str], options: Options, warn: Callable) -> list[list[Translation]]:
    self.calls.append(list(lines))
    self.begun.release()
    assert self.open.wait(60)
    return shout(lines, options, warn)
