"""Several hosts: how they find each other, exchange values, and end together.

A host is one process. It has all devices of a machine, or one GPU if a launcher
starts a process for each GPU. Host 0 is the main host. Only the main host uses
the run folder; it sends the others what they need of it. All hosts must call the
functions that exchange values, in the same order, or they wait for each other
forever. So a host must not skip such a call by a decision of its own.
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
from typing import TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

from transformer_jax.runtime import devices, progress
from transformer_jax.runtime.errors import PROGRAM, InputError, RunError, first_line, one_line
from transformer_jax.runtime.values import PyTree

Item = TypeVar("Item")

_ADVICE = "start all of them, with a coordinator that is within reach of all"
_ALL_BY_HAND = "name them with --coordinator, --hosts and --host, or let this process work by itself with --hosts=1"
# A host without a heartbeat for so long counts as dead. Compilation on busy cores can delay a heartbeat.
_SILENCE_SECONDS = 100
_SECONDS_TO_MEET = 300
_SECONDS_TO_PART = 10
# The beginnings of JAX's errors if the exchange with other hosts failed.
_LOST = re.compile("(UNKNOWN|INTERNAL|UNAVAILABLE|ABORTED|CANCELLED|DEADLINE_EXCEEDED|FAILED_PRECONDITION): ")
_c_library = ctypes.CDLL(None)
_kept = []  # the functions that C calls; they must live as long as the process
_last_words = ""  # the message of this process if JAX aborts it
_peers_failed = False  # whether this process has said that it cannot go on without the others


def join(coordinator: str | None = None, hosts: int | None = None, host: int | None = None) -> None:
  """Connects this process with the other hosts, by the arguments or the platform; before any other call of JAX.

  JAX itself finds the other hosts on TPU slices, under `srun` and `mpirun`, and
  in indexed jobs of Kubernetes; then all arguments are None.

  Args:
    coordinator: HOST:PORT on host 0; None takes it from the platform.
    hosts: the number of hosts; 1 means this process alone, on any platform; None takes it from the platform.
    host: the number of this host, from 0; None takes it from the platform.

  Raises:
    InputError: the platform does not tell enough.
    RunError: the other hosts could not be reached.
  """
  may_tell = _launched() or find_spec("libtpu") is not None  # a machine with a TPU knows its slice
  if hosts == 1 or (hosts is None and not may_tell):
    return
  global _last_words
  if coordinator and host == 0:
    _require_free(coordinator)
  _last_words = f"the hosts did not meet within {_SECONDS_TO_MEET} seconds: {_ADVICE}"
  _speak_before_abort()
  if not _met(coordinator, hosts, host):
    return
  atexit.register(_part)
  _last_words = _cannot_go_on("JAX ended it for the reason above, most likely as another host died")
  if not devices.is_main_host():
    progress.mute()
  _require_as_many_devices()
  with explain_peer_failure():
    # A group is connected at its first exchange, for which some libraries wait only briefly. Now all hosts are here;
    # later one may compile its first update for minutes. There are two groups: the hosts, and all their devices.
    barrier()
    MaximumOverHosts().highest(0, wait=True)


def _met(coordinator: str | None, hosts: int | None, host: int | None) -> bool:
  """Starts JAX's connection of the hosts; False if this process is alone."""
  # JAX's own handler of SIGTERM would hide the signal from the training loop, which tells all hosts of it.
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
  except ValueError as error:  # JAX does not know the launcher, or the launcher tells too little
    if hosts:  # the flags tell of others, so this process must not train alone
      raise InputError(
        f"JAX cannot connect host {host} of --hosts={hosts}: {error}; check --coordinator, and JAX_LOCAL_DEVICE_IDS if "
        "it is set, which is numbers with commas between them, as in 0,1"
      ) from error
    if _launched():
      raise InputError(
        f"a launcher started several processes, but JAX cannot tell which: {error}; {_ALL_BY_HAND}"
      ) from error
    _c_library.signal(signal.SIGABRT, None)
    return False
  except (RuntimeError, OSError) as error:
    # Behind the first line JAX has the names of its own calls, but for Kubernetes what the job lacks.
    reason = first_line(error, 300) if isinstance(error, jax.errors.JaxRuntimeError) else one_line(error)
    raise RunError(f"the hosts did not find each other: {reason}; {_ADVICE}") from error
  return True


def _require_as_many_devices() -> None:
  """Raises InputError if the hosts have different numbers of devices; an exchange would need equal ones."""
  counts = [len(jax.local_devices(process_index=host)) for host in range(jax.process_count())]
  for host, number in enumerate(counts):
    if number != counts[0]:
      raise InputError(f"host 0 has {counts[0]} devices, but host {host} has {number}: give all hosts equally many")


def _require_free(coordinator: str) -> None:
  """Raises InputError if the coordinator's port is in use; JAX would crash."""
  port = int(coordinator.rpartition(":")[2])
  try:
    if socket.has_dualstack_ipv6():
      socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True).close()
    else:
      socket.create_server(("", port)).close()
  except OSError as error:
    raise InputError(f"--coordinator={coordinator}: {error.strerror}; choose another port") from error


def _launched() -> bool:
  """Whether the environment of a launcher tells of several processes."""
  several = [name for name in ("SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE") if os.environ.get(name, "1") != "1"]
  # Without SLURM_STEP_NODELIST this is the script of `sbatch` itself, which is one process.
  under_srun = "SLURM_NTASKS" in several and "SLURM_STEP_NODELIST" in os.environ
  return under_srun or "OMPI_COMM_WORLD_SIZE" in several or "JOB_COMPLETION_INDEX" in os.environ


def count() -> int:
  """The number of hosts."""
  return jax.process_count()


def index() -> int:
  """The number of this host, from 0."""
  return jax.process_index()


def gather(text: str) -> list[str]:
  """The texts of all hosts, in the order of the hosts."""
  if jax.process_count() == 1:
    return [text]
  content = np.frombuffer(text.encode(), np.uint8)
  lengths = multihost_utils.process_allgather(np.int32(len(content)))
  size = 1 << (max(1, int(lengths.max())) - 1).bit_length()  # a power of two: each size is a program of its own
  padded = np.pad(content, (0, size - len(content)))
  rows = np.asarray(multihost_utils.process_allgather(padded))
  return [row[:length].tobytes().decode() for row, length in zip(rows, lengths, strict=True)]


@contextmanager
def collective_errors() -> Iterator[None]:
  """Ends all hosts with the message of an error that one host raises in the body; the body must exchange nothing."""
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


def require_equal(values: Mapping[str, object], advice: str) -> None:
  """Ends all hosts if one has another value than the main host.

  Args:
    values: the values by name, which JSON can hold.
    advice: the end of the message: what to do.

  Raises:
    InputError: the values differ; the message names the first difference.
  """
  first, *others = [json.loads(said) for said in gather(json.dumps(dict(values)))]
  for host, its in enumerate(others, 1):
    for name in {**first, **its}:
      if its.get(name) != first.get(name):
        raise InputError(f"{name} is {first.get(name)!r} on host 0, but {its.get(name)!r} on host {host}: {advice}")


def broadcast(tree: PyTree) -> PyTree:
  """The main host's arrays, bit for bit, as NumPy arrays; the other hosts pass arrays of the same shapes and types."""
  if jax.process_count() == 1:
    return tree

  def received(x: PyTree) -> np.ndarray:
    x = np.asarray(x)
    content = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
    return np.asarray(multihost_utils.broadcast_one_to_all(content)).view(x.dtype).reshape(x.shape)

  return jax.tree.map(received, tree)


def broadcast_bytes(content: bytes) -> bytes:
  """The main host's `content`; that of the other hosts is ignored."""
  [length] = broadcast(np.array([len(content)]))
  return broadcast(np.frombuffer(content[:length].ljust(length, b"\0"), np.uint8)).tobytes()


def share(items: Sequence[Item]) -> Sequence[Item]:
  """This host's part of a sequence that all hosts have; `concatenated` joins the results of the parts."""
  host, count = jax.process_index(), jax.process_count()
  return items[host * len(items) // count : (host + 1) * len(items) // count]


def concatenated(texts: list[str]) -> list[str]:
  """The lists of all hosts, joined in the order of the hosts."""
  return [text for said in gather(json.dumps(texts)) for text in json.loads(said)]


def barrier() -> None:
  """Waits until every host makes this call."""
  gather("")


class MaximumOverHosts:
  """The highest of the hosts' numbers, such as that of a signal; all hosts get it after the same step.

  The exchange of a step runs on the devices after the step's own work. Its result
  is read some steps later, so that no host waits for it.
  """

  def __init__(self):
    self._pending: deque[jax.Array] = deque()
    self._highest = devices.over_devices(lambda _, number: jax.lax.pmax(number[0], devices.AXIS), out_axes=None)

  def highest(self, number: int, *, wait: bool = False) -> int:
    """The highest number of any host `devices.steps_in_flight()` calls ago, or of this call if `wait` is true."""
    if jax.process_count() == 1:
      return number
    self._pending.append(self._highest((), devices.shard(np.full(jax.local_device_count(), number, np.int32))))
    known = 0
    while len(self._pending) > (0 if wait else devices.steps_in_flight()):
      known = max(known, int(self._pending.popleft()))
    return known


def is_peer_failure(error: BaseException) -> bool:
  """Whether JAX says by this error that an exchange with other hosts failed; most likely another host died."""
  of_jax = isinstance(error, jax.errors.JaxRuntimeError | ValueError)
  return of_jax and jax.process_count() > 1 and _LOST.match(str(error)) is not None


@contextmanager
def explain_peer_failure() -> Iterator[None]:
  """Turns JAX's error about a failed exchange with other hosts into one sentence; most likely another host died.

  Raises:
    RunError: the exchange failed in the body.
  """
  try:
    yield
  except (jax.errors.JaxRuntimeError, ValueError) as error:
    if not is_peer_failure(error):
      raise
    global _peers_failed
    _peers_failed = True
    why = f"another host ended or cannot be reached ({first_line(error, 300)})"
    raise RunError(_cannot_go_on(why)) from error


def _cannot_go_on(why: str) -> str:
  then = "start all hosts again with the same command, and they resume from the last checkpoint, if there is one"
  return f"host {jax.process_index()} cannot go on, as {why}: {then}"


def _speak_before_abort() -> None:
  """Prints `_last_words` and ends with status 1 if JAX aborts the process, as it does when another host is missing.

  The handler is a C function: Python's signal handlers never run then, as the call of abort does not return.
  """
  handler_type = ctypes.CFUNCTYPE(None, ctypes.c_int)

  @handler_type
  def handler(number: int) -> None:
    os.write(2, f"{PROGRAM}: error: {_last_words}\n".encode())
    os._exit(RunError.exit_status)

  _kept.append(handler)
  _c_library.signal(signal.SIGABRT, handler)


def _part() -> None:
  """Disconnects from the other hosts at the end of the process; waits only briefly, as they may be dead or waiting.

  If the main host is gone, it does not try to: JAX would abort the process and print the stack of its C++ functions.
  """

  def shut_down() -> None:
    with suppress(RuntimeError):  # other hosts may have ended
      jax.distributed.shutdown()

  main_is_gone = _peers_failed and not devices.is_main_host()
  parting = threading.Thread(target=shut_down, daemon=True)
  if not main_is_gone:
    parting.start()
    parting.join(_SECONDS_TO_PART)
  if main_is_gone or parting.is_alive():
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)
