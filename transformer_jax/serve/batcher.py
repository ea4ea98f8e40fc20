"""One thread that decodes for all clients: requests of one kind that wait are answered together."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

Answer = TypeVar("Answer")
# A request is a list of texts. The function answers several requests by one call.
AnswerBatch = Callable[[Sequence[Sequence[str]]], Sequence[Answer]]

# Requests that wait for the thread, and the characters of one call unless a single request has more. A request waits
# for the calls before it, so a call must not be too large.
_MOST_WAITING = 256
_MOST_CHARACTERS = 1 << 16


class Busy(Exception):
  """Too many requests wait already."""


class _Job(NamedTuple):
  answer_batch: AnswerBatch[Any]
  texts: Sequence[str]
  future: "Future[Any]"


class Batcher:
  """Answers requests in a thread of its own; the methods may be called from any thread.

  The thread takes the request that has waited longest, and with it all others for the same function. If a call fails,
  each of its requests is answered alone, so that only those that fail by themselves get the error.

  Args:
    most_waiting: the most requests that wait; further ones are refused.
  """

  def __init__(self, *, most_waiting: int = _MOST_WAITING):
    self._most_waiting = most_waiting
    self._jobs: deque[_Job] = deque()
    self._changed = threading.Condition()
    self._closed = False
    self._thread = threading.Thread(target=self._work, name="batcher", daemon=True)
    self._thread.start()

  def submit(self, answer_batch: AnswerBatch[Answer], texts: Sequence[str]) -> "Future[Answer]":
    """The future answer to a request; a request that is cancelled before its turn is dropped.

    Args:
      answer_batch: the function that answers; requests with equal functions share a call.
      texts: the request.

    Raises:
      Busy: too many requests wait.
    """
    with self._changed:
      if len(self._jobs) >= self._most_waiting:
        self._jobs = deque(job for job in self._jobs if not job.future.cancelled())
      if len(self._jobs) >= self._most_waiting:
        raise Busy
      job = _Job(answer_batch, texts, Future())
      self._jobs.append(job)
      self._changed.notify()
    return job.future

  def close(self, *, answer: bool = True) -> None:
    """Answers every request that waits, and ends the thread; with `answer` false it drops them, and waits for none."""
    with self._changed:
      self._closed = True
      if not answer:
        for job in self._jobs:
          job.future.cancel()
        self._jobs.clear()
      self._changed.notify()
    if answer:
      self._thread.join()

  def _work(self) -> None:
    while jobs := self._next_jobs():
      jobs = [job for job in jobs if job.future.set_running_or_notify_cancel()]
      if jobs and not _answer(jobs):
        for job in jobs:
          _answer([job])
      del jobs  # not kept until the next request comes

  def _next_jobs(self) -> list[_Job]:
    """The jobs of the next call; waits for one, and returns none at the end."""
    with self._changed:
      self._changed.wait_for(lambda: self._jobs or self._closed)
      chosen: list[_Job] = []
      others: deque[_Job] = deque()
      characters = 0
      for job in self._jobs:
        size = sum(map(len, job.texts))
        if chosen and (job.answer_batch != chosen[0].answer_batch or characters + size > _MOST_CHARACTERS):
          others.append(job)
        else:
          chosen.append(job)
          characters += size
      self._jobs = others
      return chosen


def _answer(jobs: Sequence[_Job]) -> bool:
  """Answers the jobs by one call; false if several jobs failed together, and still need an answer."""
  try:
    answers = jobs[0].answer_batch([job.texts for job in jobs])
  except Exception as error:
    if len(jobs) == 1:
      jobs[0].future.set_exception(error)
    return len(jobs) == 1
  for job, answer in zip(jobs, answers, strict=True):
    job.future.set_result(answer)
  return True
