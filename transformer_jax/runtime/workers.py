"""Work in other processes, in order.

A process begins by itself and not as a fork, because JAX has threads. It does not import the program that it works for,
as those of `multiprocessing` do, because a user's script may start its work without asking whether it is the main one.
It reads what to do from a pipe, and ends with the pipe. So it never outlives the process that started it, even if that
one is killed.
"""

import functools
import itertools
import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from transformer_jax.runtime.process import cores

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST = 8  # the most processes; one process cannot feed more
_ALONE = 8  # items that are worked on before other processes begin: a little work is done by then
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from transformer_jax.runtime.workers import serve; serve()"


class Workers:
  """Processes that share work: as many as cores, at most eight. The context manager ends them.

  If a process cannot begin or is killed, its work is done in this process.

  Args:
    count: the number of processes; with 1 all is done in this process.
  """

  def __init__(self, count: int | None = None):
    self._count = min(cores(), _MOST) if count is None else count
    self._numbers = itertools.count()
    self._processes: list[_Process] = []
    self._idle: SimpleQueue[_Process | None] = SimpleQueue()
    self._threads: ThreadPoolExecutor | None = None
    self._here = threading.Lock()  # held by the thread that works in this process
    self._closed = False

  def __enter__(self) -> "Workers":
    return self

  def __exit__(self, *_: object) -> None:
    self._closed = True
    for process in self._processes:
      process.kill()
    if self._threads:
      self._threads.shutdown(cancel_futures=True)
    for process in self._processes:
      process.close()

  def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """`function(item)` of each item, in order. What raises an error does so after all earlier items.

    Args:
      function: a function without effects. If it cannot be pickled, this process does all the work.
      items: are read a few ahead.
    """
    items = iter(items)
    yield from map(function, itertools.islice(items, _ALONE if self._count > 1 else None))
    first = [*itertools.islice(items, 1)]
    if not first:
      return
    items = itertools.chain(first, items)
    try:
      content = pickle.dumps(function)
    except Exception:  # whatever the user's own objects raise
      yield from map(function, items)
      return
    self._begin()
    waiting: deque[Future[Result]] = deque()
    for future in self._submitted(functools.partial(self._call, next(self._numbers), content, function), items):
      waiting.append(future)
      if len(waiting) > 2 * self._count:
        yield waiting.popleft().result()
    while waiting:
      yield waiting.popleft().result()

  def _begin(self) -> None:
    """Starts the processes if they have not been started."""
    if self._threads:
      return
    self._threads = ThreadPoolExecutor(self._count, "workers")
    for _ in range(self._count):
      try:
        self._processes.append(_Process())
        self._idle.put(self._processes[-1])
      except OSError:
        self._idle.put(None)

  def _submitted(self, call: Callable[[Item], Result], items: Iterator[Item]) -> Iterator[Future[Result]]:
    """A future for each item, and one for the error that ends the items."""
    assert self._threads
    try:
      for item in items:
        yield self._threads.submit(call, item)
    except Exception as error:
      failed: Future[Result] = Future()
      failed.set_exception(error)
      yield failed

  def _call(self, number: int, content: bytes, function: Callable[[Item], Result], item: Item) -> Result:
    process, answer = self._idle.get(), None
    try:
      answer = process.ask(number, content, item) if process else None
    except Exception:  # the process has ended, or cannot have the item
      process = None
    self._idle.put(process)
    if self._closed:
      raise CancelledError
    if answer is None:
      with self._here:
        return function(item)
    good, result = answer
    if good:
      return result
    raise result


class _Process:
  """A process that answers one question after another."""

  def __init__(self):
    # In a session of its own it gets no Ctrl-C.
    command = [sys.executable, "-P", "-c", _PROGRAM, *sys.path]
    self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    self._known: set[int] = set()

  def ask(self, number: int, content: bytes, item: object) -> tuple[bool, Any]:
    """Whether the function ended without an error, and its result or its error."""
    tasks, answers = self._process.stdin, self._process.stdout
    assert tasks and answers
    pickle.dump((number, None if number in self._known else content, item), tasks, pickle.HIGHEST_PROTOCOL)
    tasks.flush()
    self._known.add(number)
    return pickle.load(answers)

  def kill(self) -> None:
    self._process.kill()

  def close(self) -> None:
    """Frees what is left of a process that is killed."""
    with suppress(OSError):
      self._process.communicate()


def serve() -> None:
  """The main function of the processes: answers questions until there are no more."""
  answers = os.fdopen(os.dup(1), "wb")
  os.dup2(2, 1)  # nothing else may write among the answers
  functions: dict[int, Callable[[object], object]] = {}
  try:
    while True:
      number, content, item = pickle.load(sys.stdin.buffer)
      if content:
        functions[number] = pickle.loads(content)
      try:
        answer = True, functions[number](item)
      except Exception as error:
        answer = False, error
      pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
      answers.flush()
  except Exception:  # there is nobody to answer, or a function is not to be had here: the other process does its work
    os._exit(0)
