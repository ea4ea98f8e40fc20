"""Lines gathered into windows."""

import pytest

from transformer_jax.decoding import windows as module
from transformer_jax.decoding.windows import windows


def gathered(*args):
  return [(list(texts), error and str(error)) for texts, error in windows(*args)]


def test_windows_hold_all_lines_in_order():
  assert gathered("abcdefg", 3) == [(["a", "b", "c"], None), (["d", "e", "f"], None), (["g"], None)]
  assert gathered([], 3) == []


def test_windows_are_bounded_by_their_characters(monkeypatch):
  monkeypatch.setattr(module, "_CHARACTERS", 7)
  lines = ["a" * n for n in (1, 5, 1, 2, 90, 3, 4, 0, 0)]
  assert [[len(text) for text in texts] for texts, _ in windows(lines, 4)] == [[1, 5, 1], [2, 90], [3, 4], [0, 0]]


def test_lines_that_came_do_not_wait_for_others():
  asked = []

  def more(seconds):
    asked.append(seconds)
    return len(asked) not in (2, 3)

  assert gathered("abcdef", 99, more) == [(["a", "b"], None), (["c"], None), (["d", "e", "f"], None)]
  assert all(0 <= seconds <= 0.05 for seconds in asked)


def test_a_trickle_of_lines_is_not_waited_for_forever(monkeypatch):
  now = 0.0

  def more(seconds):  # another line comes 0.03 seconds later
    nonlocal now
    now += min(seconds, 0.03)
    return seconds >= 0.03

  monkeypatch.setattr(module.time, "monotonic", lambda: 5 + now)
  sizes = [len(texts) for texts, _ in windows(map(str, range(100)), 4096, more)]
  assert sum(sizes) == 100 and max(sizes) == 34  # of a second


@pytest.mark.parametrize("bad", ["a\ud800", "\udc80", None, b"bytes", 3])
def test_what_is_no_text_comes_after_the_lines_before_it(bad):
  [(first, none), (second, error)] = gathered(["a", "b", "é", bad, "c"], 2)
  assert (first, none, second) == (["a", "b"], None, ["é"])
  assert error.startswith("line 4 ") and "\n" not in error
