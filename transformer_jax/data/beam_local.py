"""Apache Beam on this machine: its own runner in several processes, of which nothing is downloaded."""

import importlib
import logging
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from transformer_jax.runtime.errors import PROGRAM, RunError, first_line
from transformer_jax.runtime.process import ended_at_once_by_ctrl_c

_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from transformer_jax.data.beam_local import work; work()"
_THREAD = "run_worker"  # Beam's name of the threads that wait for processes
_SECONDS_TO_END = 5  # a pipeline that fails ends its processes shortly before it ends


def runner() -> Any:
  """Beam's runner. It is named by its class, as the name DirectRunner may stand for one that Beam downloads."""
  environments = importlib.import_module("apache_beam.transforms.environments")
  command = shlex.join([sys.executable, "-P", "-c", _PROGRAM, *sys.path])
  environment = environments.SubprocessSDKEnvironment.from_command_string(f"exec {command}")
  fn_api_runner = importlib.import_module("apache_beam.runners.portability.fn_api_runner")
  return fn_api_runner.FnApiRunner(default_environment=environment)


def work() -> None:
  """The main function of the processes. Their errors go to the runner, and Beam would print them as well."""
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  logging.disable()
  harness = importlib.import_module("apache_beam.runners.worker.sdk_worker_main")
  os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
  harness.main([])


@contextmanager
def watched() -> Iterator[None]:
  """Ends this program with a sentence if one of the processes is killed in the body: Beam would wait for it forever.

  Ctrl-C ends it at once. The other processes then end by themselves. Nothing is shown of what Beam logs.
  """
  for name in ("apache_beam", "grpc"):
    logging.getLogger(name).setLevel(logging.CRITICAL)
  before, over = threading.excepthook, threading.Event()

  def failed(args: Any) -> None:
    if args.thread and args.thread.name == _THREAD:
      if not over.wait(_SECONDS_TO_END):
        advice = "if memory was full, give the command again with fewer --workers"
        os.write(2, f"{PROGRAM}: error: {first_line(args.exc_value)}; {advice}\n".encode())
        os._exit(RunError.exit_status)
    elif not args.exc_type.__module__.startswith("grpc"):  # a lost connection, of which the other thread tells
      before(args)

  threading.excepthook = failed  # for good, as the processes may end after the body
  with ended_at_once_by_ctrl_c():
    try:
      yield
    finally:
      over.set()
