"""Requests share calls, and neither change nor fail each other."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.serve.fake import Gate, shout
from transformer_jax.serve import decoder as decoders
from transformer_jax.serve.decoder import Busy, Decoder
from transformer_jax.serve.search import Options, Search

GREEDY, BEAM = Options(1, 0.6, 1), Options(3, 0.6, 3)
NO_WARNING = []


class Searching(Decoder):
  """A decoder that translates with one function."""

  def __init__(self, translate, **options):
    super().__init__(**options)
    self._translate = translate

  def search(self, lines, options):
    return self.submit(Search(self._translate, options), lines)


@pytest.fixture
def gate():
  return Gate()


@pytest.fixture
def decoder(gate):
  decoder = Searching(gate, most_waiting=7)
  yield decoder
  gate.open.set()
  decoder.close()


def occupied(decoder, gate):
  """The thread is in a call, so that further requests wait."""
  first = decoder.search(["first"], GREEDY)
  gate.begun.acquire()
  return first


def test_requests_that_wait_share_a_call_if_their_options_are_equal(decoder, gate):
  futures = [occupied(decoder, gate)]
  futures += [decoder.search(lines, options) for lines, options in ((["a", "b"], BEAM), (["c"], GREEDY), (["d"], BEAM))]
  gate.open.set()
  found = [[best[0].text for best in future.result().lines] for future in futures]
  assert found == [["FIRST"], ["A", "B"], ["C"], ["D"]]
  assert gate.calls == [["first"], ["a", "b", "d"], ["c"]]


def test_a_call_has_a_bounded_number_of_characters(decoder, gate, monkeypatch):
  monkeypatch.setattr(decoders, "_MOST_CHARACTERS", 5)
  futures = [occupied(decoder, gate), *(decoder.search([line], GREEDY) for line in ("aaaaaaa", "bbb", "ccc", "dd"))]
  gate.open.set()
  assert [future.result().lines[0][0].text for future in futures[1:]] == ["AAAAAAA", "BBB", "CCC", "DD"]
  assert gate.calls[1:] == [["aaaaaaa"], ["bbb", "dd"], ["ccc"]]


def test_a_full_queue_refuses(decoder, gate):
  occupied(decoder, gate)
  futures = [decoder.search(["a"], GREEDY) for _ in range(7)]
  with pytest.raises(Busy):
    decoder.search(["b"], GREEDY)
  gate.open.set()
  assert all(future.result() for future in futures)


def test_a_cancelled_request_is_not_translated(decoder, gate):
  occupied(decoder, gate)
  cancelled, other = decoder.search(["a"], GREEDY), decoder.search(["b"], GREEDY)
  assert cancelled.cancel()
  gate.open.set()
  assert other.result().lines[0][0].text == "B" and gate.calls[1:] == [["b"]]


def test_closing_answers_what_waits(gate):
  decoder = Searching(gate)
  futures = [occupied(decoder, gate), *(decoder.search(["a"], options) for options in (BEAM, GREEDY))]
  closing = threading.Thread(target=decoder.close)
  closing.start()
  gate.open.set()
  closing.join()
  assert all(future.done() and future.result() for future in futures)


def test_a_request_that_fails_fails_alone():
  begun, go = threading.Event(), threading.Event()

  def translate(lines, options, warn):
    begun.set()
    go.wait()
    if "bad" in lines:
      raise ValueError("bad")
    return shout(lines, options, warn)

  decoder = Searching(translate)
  decoder.search(["first"], GREEDY)
  begun.wait()
  futures = [decoder.search([line], GREEDY) for line in ("a", "bad", "b")]
  go.set()
  decoder.close()
  assert [str(future.exception() or future.result().lines[0][0].text) for future in futures] == ["A", "bad", "B"]


def test_warnings_count_the_lines_of_their_request(decoder, gate):
  futures = [occupied(decoder, gate)]
  futures += [decoder.search(lines, GREEDY) for lines in (["a", "b" * 101], ["c"], ["d" * 101, "e", "f" * 101])]
  gate.open.set()
  assert [future.result().warnings for future in futures] == [
    [],
    ["line 2 is too long"],
    [],
    ["line 1 is too long", "line 3 is too long"],
  ]


def test_many_threads_get_their_own_answers():
  decoder = Searching(shout)

  def ask(number):
    generator = random.Random(number)
    lines = [f"{number} {i}" for i in range(generator.randint(1, 5))]
    options = generator.choice([GREEDY, BEAM])
    return decoder.search(lines, options).result(60).lines == shout(lines, options, NO_WARNING.append)

  with ThreadPoolExecutor(64) as executor:
    assert all(executor.map(ask, range(250)))
  decoder.close()


def test_requests_that_were_cancelled_do_not_wait():
  begun, free = threading.Event(), threading.Event()

  def answer(requests):
    begun.set()
    assert free.wait(60)
    return requests

  decoder = Decoder(most_waiting=2)
  running = decoder.submit(answer, ["a"])
  assert begun.wait(60)
  for text in ("b", "c"):
    decoder.submit(answer, [text]).cancel()
  last = decoder.submit(answer, ["d"])
  free.set()
  assert (running.result(60), last.result(60)) == (["a"], ["d"])
  decoder.close()
