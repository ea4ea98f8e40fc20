"""One thread that decodes for all clients: the requests that wait are translated together."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from transformer_jax.decoding.long_lines import LineWarning, Translation

# Requests that wait for the thread, and the characters that one call translates unless a single request has more. A
# request waits for the calls before it, so a call must not be too large.
_MOST_WAITING = 256
_MOST_CHARACTERS = 1 << 16


class Options(NamedTuple):
  """The options of a search, as in `Translator.translate_lines`; requests with equal options share a call."""

  beam_size: int
  length_penalty: float
  n_best: int


class Answer(NamedTuple):
  """The result of one request.

  Attributes:
    lines: the translations of each line, best first.
    warnings: the warnings about lines, whose numbers count the lines of this request.
  """

  lines: list[list[Translation]]
  warnings: list[LineWarning]


# (lines, options, a function that takes each warning) -> the translations of each line.
Translate = Callable[[Sequence[str], Options, Callable[[LineWarning], object]], list[list[Translation]]]


class Busy(Exception):
  """Too many requests wait already."""


class _Job(NamedTuple):
  lines: list[str]
  options: Options
  future: "Future[Answer]"


class Decoder:
  """Translates in a thread of its own; the methods may be called from any thread.

  The thread takes the request that has waited longest, and with it all others that have the same options. A
  translation depends on its line alone, so the others change no answer. If a call fails, each of its requests is
  translated alone, so that only those that fail by themselves get the error.

  Args:
    translate: the function that translates.
    most_waiting: the most requests that wait; further ones are refused.
  """

  def __init__(self, translate: Translate, *, most_waiting: int = _MOST_WAITING):
    self._translate = translate
    self._most_waiting = most_waiting
    self._jobs: deque[_Job] = deque()
    self._changed = threading.Condition()
    self._closed = False
    self._thread = threading.Thread(target=self._work, name="decoder", daemon=True)
    self._thread.start()

  def submit(self, lines: list[str], options: Options) -> "Future[Answer]":
    """The future answer to a request; a request that is cancelled before its turn is not translated.

    Raises:
      Busy: too many requests wait.
    """
    with self._changed:
      if len(self._jobs) >= self._most_waiting:
        raise Busy
      job = _Job(lines, options, Future())
      self._jobs.append(job)
      self._changed.notify()
    return job.future

  def close(self) -> None:
    """Answers every request that waits, and ends the thread."""
    with self._changed:
      self._closed = True
      self._changed.notify()
    self._thread.join()

  def _work(self) -> None:
    while jobs := self._next_jobs():
      jobs = [job for job in jobs if job.future.set_running_or_notify_cancel()]
      if not self._answer(jobs):
        for job in jobs:
          self._answer([job])
      del jobs  # not kept until the next request comes

  def _next_jobs(self) -> list[_Job]:
    """The jobs of the next call; waits for one, and returns none at the end."""
    with self._changed:
      self._changed.wait_for(lambda: self._jobs or self._closed)
      chosen: list[_Job] = []
      others: deque[_Job] = deque()
      characters = 0
      for job in self._jobs:
        size = sum(map(len, job.lines))
        if chosen and (job.options != chosen[0].options or characters + size > _MOST_CHARACTERS):
          others.append(job)
        else:
          chosen.append(job)
          characters += size
      self._jobs = others
      return chosen

  def _answer(self, jobs: list[_Job]) -> bool:
    """Answers the jobs by one call; false if several jobs failed together, and still need an answer."""
    if not jobs:
      return True
    warnings: list[LineWarning] = []
    lines = [line for job in jobs for line in job.lines]
    try:
      found = self._translate(lines, jobs[0].options, warnings.append)
    except Exception as error:
      if len(jobs) == 1:
        jobs[0].future.set_exception(error)
      return len(jobs) == 1
    first = 0
    for job in jobs:
      end = first + len(job.lines)
      own = [LineWarning(w.line - first, w.what) for w in warnings if first < w.line <= end]
      job.future.set_result(Answer(found[first:end], own))
      first = end
    return True
