"""Several hosts: who they are, what they tell one another, and how they end together.

A host is one process: of a machine with all its devices, or of one GPU where a
launcher starts a process for each. Host 0 is the main one, the only one that
touches the run folder; the others hear from it what is in there. Whatever is
said here must be said by all hosts, in the same order, or they wait for one
another: only what every host decides alike may stand between two calls.
"""

import atexit
import ctypes
import json
import os
import re
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

from transformer_jax.runtime import devices, progress
from transformer_jax.runtime.errors import PROGRAM, InputError, RunError, first_line

Item = TypeVar("Item")

_ADVICE = "start all of them, with a coordinator that is within reach of all"
_ALL_BY_HAND = "name them with --coordinator, --hosts and --host, or let this process work by itself with --hosts=1"
# A host that was not heard of for so long counts as dead. Compiling on busy cores can delay a sign of life by a while.
_SILENCE_SECONDS = 100
_SECONDS_TO_MEET = 300
_SECONDS_TO_PART = 10
# How JAX's errors begin where the exchange with other hosts failed.
_LOST = re.compile("(UNKNOWN|INTERNAL|UNAVAILABLE|ABORTED|CANCELLED|DEADLINE_EXCEEDED|FAILED_PRECONDITION): ")
_c_library = ctypes.CDLL(None)
_kept = []  # what C calls, for as long as the process lives
_last_words = ""  # of this process, where JAX ends it


def join(coordinator: str | None = None, hosts: int | None = None, host: int | None = None) -> None:
  """Makes this process one of several, as the arguments or the platform say; before any other call of JAX.

  JAX itself finds the others on TPU slices, under `srun` and `mpirun`, and in
  indexed jobs of Kubernetes.

  Args:
    coordinator: HOST:PORT on host 0; None, as the others, where the platform is to tell.
    hosts: how many there are; 1 is this process by itself, whatever the platform tells.
    host: the number of this one, from 0.

  Raises:
    InputError: what the platform says is not enough.
    RunError: the others could not be reached.
  """
  if hosts == 1 or (hosts is None and not _platform_may_tell()):
    return
  global _last_words
  if coordinator and host == 0:
    _require_free(coordinator)
  _last_words = f"the hosts did not meet within {_SECONDS_TO_MEET} seconds: {_ADVICE}"
  _speak_before_abort()
  # Its own handler of SIGTERM would hide the signal from the loop, where all hosts hear of it.
  jax.config.update("jax_enable_preemption_service", False)
  try:
    jax.distributed.initialize(
      coordinator,
      hosts,
      host,
      cluster_detection_method="deactivate" if hosts else None,
      initialization_timeout=_SECONDS_TO_MEET,
      heartbeat_timeout_seconds=_SILENCE_SECONDS,
    )
  except ValueError as error:  # no launcher that JAX knows, or it says too little
    if _launched():
      raise InputError(
        f"a launcher started several processes, but JAX cannot tell which: {error}; {_ALL_BY_HAND}"
      ) from error
    _c_library.signal(signal.SIGABRT, None)
    return
  except (RuntimeError, OSError) as error:
    raise RunError(f"the hosts did not find each other: {first_line(error, 300)}; {_ADVICE}") from error
  atexit.register(_part)
  _last_words = f"{_cannot_go_on()}: JAX ended it for the reason above, most likely as another host died"
  if not devices.is_main_host():
    progress.mute()
  # The first exchange connects the hosts, for which some libraries have little patience: now all are here.
  require_equal({"the number of its devices": jax.local_device_count()}, "give all hosts the same devices")


def _require_free(coordinator: str) -> None:
  """JAX would crash."""
  port = int(coordinator.rpartition(":")[2])
  try:
    if socket.has_dualstack_ipv6():
      socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True).close()
    else:
      socket.create_server(("", port)).close()
  except OSError as error:
    raise InputError(f"--coordinator={coordinator}: {error.strerror}; choose another port") from error


def _launched() -> bool:
  """Whether a launcher says that there are several processes."""
  several = [name for name in ("SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE") if os.environ.get(name, "1") != "1"]
  # Without SLURM_STEP_NODELIST this is the script of `sbatch` itself, in which one process runs.
  under_srun = "SLURM_NTASKS" in several and "SLURM_STEP_NODELIST" in os.environ
  return under_srun or "OMPI_COMM_WORLD_SIZE" in several or "JOB_COMPLETION_INDEX" in os.environ


def _platform_may_tell() -> bool:
  return _launched() or find_spec("libtpu") is not None  # a TPU's machine knows its slice


def count() -> int:
  """How many hosts there are."""
  return jax.process_count()


def index() -> int:
  """The number of this host, from 0."""
  return jax.process_index()


def gather(text: str) -> list[str]:
  """What each host says, in their order."""
  if jax.process_count() == 1:
    return [text]
  content = np.frombuffer(text.encode(), np.uint8)
  lengths = multihost_utils.process_allgather(np.int32(len(content)))
  padded = np.pad(content, (0, lengths.max() - len(content)))
  rows = np.asarray(multihost_utils.process_allgather(padded))
  return [row[:length].tobytes().decode() for row, length in zip(rows, lengths, strict=True)]


@contextmanager
def collective_errors() -> Iterator[None]:
  """An error on one host in the body, in which hosts must not exchange anything, ends all of them with its sentence."""
  failure: InputError | RunError | OSError | None = None
  try:
    yield
  except (InputError, RunError, OSError) as error:
    failure = error
  said = gather(json.dumps([type(failure) is InputError, str(failure)]) if failure else "")
  if failure:
    raise failure
  for host, sentence in enumerate(said):
    if sentence:
      mistake, message = json.loads(sentence)
      raise (InputError if mistake else RunError)(f"host {host}: {message}")


def require_equal(values: Mapping[str, Any], advice: str) -> None:
  """Ends all hosts where one has another value than the main host.

  Args:
    values: names and what JSON can hold.
    advice: what to do, the end of the sentence.

  Raises:
    InputError: names the first difference.
  """
  first, *others = [json.loads(said) for said in gather(json.dumps(dict(values)))]
  for host, its in enumerate(others, 1):
    for name in {**first, **its}:
      if its.get(name) != first.get(name):
        raise InputError(f"{name} is {first.get(name)!r} on host 0, but {its.get(name)!r} on host {host}: {advice}")


def from_main(tree: Any) -> Any:
  """The arrays of the main host, bit for bit, as NumPy arrays; the others give arrays of the same shapes and types."""
  if jax.process_count() == 1:
    return tree

  def received(x: Any) -> np.ndarray:
    x = np.asarray(x)
    content = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
    return np.asarray(multihost_utils.broadcast_one_to_all(content)).view(x.dtype).reshape(x.shape)

  return jax.tree.map(received, tree)


def bytes_from_main(content: bytes) -> bytes:
  """What the main host gives; what the others give is not used."""
  [length] = from_main(np.array([len(content)]))
  return from_main(np.frombuffer(content[:length].ljust(length, b"\0"), np.uint8)).tobytes()


def share(items: Sequence[Item]) -> Sequence[Item]:
  """This host's part of what all have; `concatenated` puts the parts together again."""
  host, count = jax.process_index(), jax.process_count()
  return items[host * len(items) // count : (host + 1) * len(items) // count]


def concatenated(texts: list[str]) -> list[str]:
  """The lists of all hosts, one after the other."""
  return [text for said in gather(json.dumps(texts)) for text in json.loads(said)]


def wait() -> None:
  """Until every host is here."""
  gather("")


class MaximumOverHosts:
  """Tells all hosts, after the same step, the highest of the numbers that they give, such as that of a signal.

  The exchange of a step runs on the devices behind the step's own work and is
  looked at some steps later, so that nobody waits for it.
  """

  def __init__(self):
    self._pending: deque[jax.Array] = deque()
    self._highest = devices.over_devices(lambda _, number: jax.lax.pmax(number[0], devices.AXIS), out_axes=None)

  def highest(self, number: int, *, wait: bool = False) -> int:
    """The highest number of any host, as of `devices.steps_in_flight()` calls ago, or of now if that is waited for."""
    if jax.process_count() == 1:
      return number
    self._pending.append(self._highest((), devices.shard(np.full(jax.local_device_count(), number, np.int32))))
    known = 0
    while len(self._pending) > (0 if wait else devices.steps_in_flight()):
      known = max(known, int(self._pending.popleft()))
    return known


@contextmanager
def explain_peer_failure() -> Iterator[None]:
  """Says in one sentence that the work with the other hosts came to an end, most likely as one of them died.

  Raises:
    RunError: in place of JAX's error.
  """
  try:
    yield
  except (jax.errors.JaxRuntimeError, ValueError) as error:
    if jax.process_count() == 1 or not _LOST.match(str(error)):
      raise
    raise RunError(
      f"{_cannot_go_on()}, as another one ended or the work with it failed: {first_line(error, 300)}"
    ) from error


def _cannot_go_on() -> str:
  return f"host {jax.process_index()} cannot go on (start all again: the last checkpoint in the run folder is good)"


def _speak_before_abort() -> None:
  """Says `_last_words` and ends with status 1 where JAX aborts the process, as it does when it misses another host.

  Python's own handlers of signals never run then: the call of abort does not come back.
  """
  handler_type = ctypes.CFUNCTYPE(None, ctypes.c_int)

  @handler_type
  def handler(number: int) -> None:
    os.write(2, f"{PROGRAM}: error: {_last_words}\n".encode())
    os._exit(RunError.exit_status)

  _kept.append(handler)
  _c_library.signal(signal.SIGABRT, handler)


def _part() -> None:
  """Leaves the others at the end of the process; does not wait long, as they may be dead or wait for this one."""

  def shut_down() -> None:
    with suppress(RuntimeError):  # as others are gone
      jax.distributed.shutdown()

  parting = threading.Thread(target=shut_down, daemon=True)
  parting.start()
  parting.join(_SECONDS_TO_PART)
  if parting.is_alive():
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)
