"""`train.py` on several hosts, as processes of this machine, and what they leave."""

import dataclasses
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np
import pytest

import train as program
from tests import tiny_run
from tests.example_run import metrics_of
from transformer_jax.config import Config, EvaluateConfig
from transformer_jax.config.serialization import to_json


def tiny(prefix: str, *, translations: bool = False, every: int = 2, **train) -> Config:
  # Eq. 3's own rate of so narrow a model, 0.2, makes 1e-7 into 1e-3 within ten updates, on two devices of one host too.
  config = tiny_run.tiny(prefix, **{"peak_learning_rate": 0.01, **train})
  data = dataclasses.replace(config.data, test=prefix if translations else "")
  return dataclasses.replace(config, data=data, evaluate=EvaluateConfig(every=every, sentences=0))


class Processes:
  """`train.py` on several hosts, as processes with `devices` devices each.

  Each has a working directory and a cache of its own, as on disks of their own; a
  run folder can be made by the first alone. A host whose config is None has no --config.
  """

  def __init__(self, folder: Path, workdir: Path, configs: Sequence[Config | None], devices: int = 1):
    port = free_port()
    self.all = []
    for host, config in enumerate(configs):
      own = folder / f"host{host}"
      own.mkdir(exist_ok=True)
      file = own / "config.py"
      if config:
        file.write_text(
          f"from transformer_jax.config import serialization\nimport json\nTEXT = {to_json(config)!r}\n"
          "def get_config():\n  return serialization.from_dict(json.loads(TEXT))\n"
        )
      flags = [f"--config={file}"] if config else []
      flags += [f"--workdir={workdir if host == 0 else '/dev/null/nowhere'}"]
      if len(configs) > 1:
        flags += [f"--coordinator=localhost:{port}", f"--hosts={len(configs)}", f"--host={host}"]
      environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "TRANSFORMER_JAX_CACHE": str(own / "cache"),
        "JAX_COMPILATION_CACHE_DIR": str(folder.parent / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
      }
      self.all.append(
        subprocess.Popen(
          [sys.executable, program.__file__, *flags],
          cwd=own,
          env=environment,
          text=True,
          stdout=subprocess.PIPE,
          stderr=subprocess.PIPE,
        )
      )

  def end(self, timeout: float = 500) -> list[tuple[int, str, str]]:
    """Status, standard output without what gloo says there, and standard error of each."""
    try:
      said = [process.communicate(timeout=timeout) for process in self.all]
    finally:
      for process in self.all:
        process.kill()
    said = [(re.sub(r"\[Gloo\].*\n", "", out), error) for out, error in said]
    return [(process.returncode, *text) for process, text in zip(self.all, said, strict=True)]


def free_port() -> int:
  with socket.socket() as listener:
    listener.bind(("localhost", 0))
    return listener.getsockname()[1]


def trained(
  folder: Path, workdir: Path, config: Config, *, count: int = 1, devices: int = 1
) -> list[tuple[int, str, str]]:
  ends = Processes(folder, workdir, [config] * count, devices).end()
  assert [status for status, _, _ in ends] == [0] * count, ends
  return ends


def assert_equal_to_rounding(a: Path, b: Path, config: Config) -> None:
  """Checkpoint and metrics of two runs.

  Keys' biases change no softmax: their gradients are rounding errors, of which Adam makes steps as large as any.
  """

  def check(path, x, y):
    if not jax.tree_util.keystr(path).endswith("['key']['bias']"):
      np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5, err_msg=jax.tree_util.keystr(path))

  jax.tree_util.tree_map_with_path(check, tiny_run.state_of(a, config), tiny_run.state_of(b, config))
  ours, theirs = metrics_of(a), metrics_of(b)
  assert len(ours) == len(theirs) > 0
  for one, other in zip(ours, theirs, strict=True):
    assert one == {
      key: pytest.approx(value, rel=1e-5) if isinstance(value, float) else value for key, value in other.items()
    }


def assert_same_bits(a: Path, b: Path, config: Config) -> None:
  tiny_run.assert_same_bits(tiny_run.state_of(a, config), tiny_run.state_of(b, config))
  assert metrics_of(a) == metrics_of(b)


def wait_for_lines(processes: Processes, workdir: Path, count: int) -> None:
  """Until the log has this number of lines."""
  metrics, limit = workdir / "metrics.jsonl", time.monotonic() + 400
  while not (metrics.exists() and metrics.read_text().count("\n") >= count):
    assert all(process.poll() is None for process in processes.all), processes.end()
    assert time.monotonic() < limit
    time.sleep(0.01)
