"""Requests share calls, and neither change nor fail each other."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.serve.fake import Gate, shout
from transformer_jax.serve import batcher as batchers
from transformer_jax.serve.batcher import Batcher, Busy
from transformer_jax.serve.search import Options, Search

GREEDY, BEAM = Options(1, 0.6, 1), Options(3, 0.6, 3)
NO_WARNING = []


class Searching(Batcher):
  """A batcher that translates with one function."""

  def __init__(self, translate, **options):
    super().__init__(**options)
    self._translate = translate

  def search(self, lines, options):
    return self.submit(Search(self._translate, options), lines)


@pytest.fixture
def gate():
  return Gate()


@pytest.fixture
def batcher(gate):
  batcher = Searching(gate, most_waiting=7)
  yield batcher
  gate.open.set()
  batcher.close()


def occupied(batcher, gate):
  """The thread is in a call, so that further requests wait."""
  first = batcher.search(["first"], GREEDY)
  gate.begun.acquire()
  return first


def test_requests_that_wait_share_a_call_if_their_options_are_equal(batcher, gate):
  futures = [occupied(batcher, gate)]
  futures += [batcher.search(lines, options) for lines, options in ((["a", "b"], BEAM), (["c"], GREEDY), (["d"], BEAM))]
  gate.open.set()
  found = [[best[0].text for best in future.result().lines] for future in futures]
  assert found == [["FIRST"], ["A", "B"], ["C"], ["D"]]
  assert gate.calls == [["first"], ["a", "b", "d"], ["c"]]


def test_a_call_has_a_bounded_number_of_characters(batcher, gate, monkeypatch):
  monkeypatch.setattr(batchers, "_MOST_CHARACTERS", 5)
  futures = [occupied(batcher, gate), *(batcher.search([line], GREEDY) for line in ("aaaaaaa", "bbb", "ccc", "dd"))]
  gate.open.set()
  assert [future.result().lines[0][0].text for future in futures[1:]] == ["AAAAAAA", "BBB", "CCC", "DD"]
  assert gate.calls[1:] == [["aaaaaaa"], ["bbb", "dd"], ["ccc"]]


def test_a_full_queue_refuses(batcher, gate):
  occupied(batcher, gate)
  futures = [batcher.search(["a"], GREEDY) for _ in range(7)]
  with pytest.raises(Busy):
    batcher.search(["b"], GREEDY)
  gate.open.set()
  assert all(future.result() for future in futures)


def test_a_cancelled_request_is_not_translated(batcher, gate):
  occupied(batcher, gate)
  cancelled, other = batcher.search(["a"], GREEDY), batcher.search(["b"], GREEDY)
  assert cancelled.cancel()
  gate.open.set()
  assert other.result().lines[0][0].text == "B" and gate.calls[1:] == [["b"]]


def test_closing_answers_what_waits(gate):
  batcher = Searching(gate)
  futures = [occupied(batcher, gate), *(batcher.search(["a"], options) for options in (BEAM, GREEDY))]
  closing = threading.Thread(target=batcher.close)
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

  batcher = Searching(translate)
  batcher.search(["first"], GREEDY)
  begun.wait()
  futures = [batcher.search([line], GREEDY) for line in ("a", "bad", "b")]
  go.set()
  batcher.close()
  assert [str(future.exception() or future.result().lines[0][0].text) for future in futures] == ["A", "bad", "B"]


def test_warnings_count_the_lines_of_their_request(batcher, gate):
  futures = [occupied(batcher, gate)]
  futures += [batcher.search(lines, GREEDY) for lines in (["a", "b" * 101], ["c"], ["d" * 101, "e", "f" * 101])]
  gate.open.set()
  assert [future.result().warnings for future in futures] == [
    [],
    ["line 2 is too long"],
    [],
    ["line 1 is too long", "line 3 is too long"],
  ]


def test_many_threads_get_their_own_answers():
  batcher = Searching(shout)

  def ask(number):
    generator = random.Random(number)
    lines = [f"{number} {i}" for i in range(generator.randint(1, 5))]
    options = generator.choice([GREEDY, BEAM])
    return batcher.search(lines, options).result(60).lines == shout(lines, options, NO_WARNING.append)

  with ThreadPoolExecutor(64) as executor:
    assert all(executor.map(ask, range(250)))
  batcher.close()


def test_requests_that_were_cancelled_do_not_wait():
  begun, free = threading.Event(), threading.Event()

  def answer(requests):
    begun.set()
    assert free.wait(60)
    return requests

  batcher = Batcher(most_waiting=2)
  running = batcher.submit(answer, ["a"])
  assert begun.wait(60)
  for text in ("b", "c"):
    batcher.submit(answer, [text]).cancel()
  last = batcher.submit(answer, ["d"])
  free.set()
  assert (running.result(60), last.result(60)) == (["a"], ["d"])
  batcher.close()


def test_without_answers_nobody_is_waited_for(gate):
  batcher = Searching(gate)
  running, waiting = occupied(batcher, gate), batcher.search(["second"], GREEDY)
  batcher.close(answer=False)
  assert waiting.cancelled() and not running.done()
  gate.open.set()
  assert running.result().lines[0][0].text == "FIRST"
