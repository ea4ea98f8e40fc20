"""Several hosts, as processes of this machine: they do what one does, stop together, and say when one is missing."""

import dataclasses
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from etils import epath

import train as program
from tests.example_run import metrics_of, write_corpus
from transformer_jax import checkpoint, hosts
from transformer_jax.config import Config, Corpus, DataConfig, DecodeConfig, Document, EvaluateConfig, TrainConfig
from transformer_jax.config_values import to_json
from transformer_jax.errors import InputError
from transformer_jax.flags import Cluster
from transformer_jax.language.config import BERTConfig, ELMoConfig, GPTConfig
from transformer_jax.model.config import ModelConfig
from transformer_jax.recurrent.config import LuongConfig
from transformer_jax.training import loop
from transformer_jax.training.step import abstract_state


@pytest.fixture
def prefix(tmp_path):
  return write_corpus(tmp_path)


def tiny(prefix: str, *, translations: bool = False, every: int = 2, **train) -> Config:
  defaults: dict[str, Any] = {
    "steps": 6,
    "batch_tokens": 128,
    "warmup_steps": 3,
    "log_every": 2,
    "save_every": 2,
    "keep": 2,
  }
  # Eq. 3's own rate of so narrow a model, 0.2, makes 1e-7 into 1e-3 within ten updates, on two devices of one host too.
  defaults["peak_learning_rate"] = 0.01
  return Config(
    data=DataConfig(
      corpus=Corpus.TEXT, train=prefix, validation=prefix, test=prefix if translations else "", row_length=16
    ),
    model=ModelConfig(vocab_size=290, num_layers=1, d_model=8, d_ff=16, num_heads=2, dropout=0.1),
    train=TrainConfig(**{**defaults, **train}),
    evaluate=EvaluateConfig(every=every, sentences=0),
    decode=DecodeConfig(beam_size=1, max_source_length=16, extra_length=3),
  )


@pytest.fixture
def initialized(monkeypatch):
  """With what JAX is asked to find the hosts."""
  calls = []
  monkeypatch.setattr(jax.distributed, "initialize", lambda *args, **options: calls.append((args, options)))
  monkeypatch.setattr(hosts.atexit, "register", lambda function: None)
  monkeypatch.setattr(hosts, "find_spec", lambda name: None)  # no TPU
  for name in ("SLURM_NTASKS", "SLURM_STEP_NODELIST", "OMPI_COMM_WORLD_SIZE", "JOB_COMPLETION_INDEX"):
    monkeypatch.delenv(name, raising=False)
  return calls


@pytest.mark.parametrize(
  "environment",
  [
    {},
    {"SLURM_NTASKS": "1", "SLURM_STEP_NODELIST": "a"},
    {"SLURM_NTASKS": "4"},  # the script of sbatch
    {"OMPI_COMM_WORLD_SIZE": "1"},
  ],
)
def test_a_process_that_nothing_tells_of_others_works_by_itself(initialized, monkeypatch, environment):
  for name, value in environment.items():
    monkeypatch.setenv(name, value)
  hosts.join(Cluster())
  assert not initialized


LAUNCHED = [
  {"SLURM_NTASKS": "4", "SLURM_STEP_NODELIST": "a[1-4]"},
  {"OMPI_COMM_WORLD_SIZE": "2"},
  {"JOB_COMPLETION_INDEX": "0"},
]


@pytest.mark.parametrize("environment", LAUNCHED, ids=["Slurm", "Open MPI", "Kubernetes"])
def test_under_a_launcher_jax_is_asked_unless_a_flag_says_no(initialized, monkeypatch, environment):
  for name, value in environment.items():
    monkeypatch.setenv(name, value)
  hosts.join(Cluster(hosts=1))
  assert not initialized
  hosts.join(Cluster())
  [(asked, options)] = initialized
  assert asked == (None, None, None) and options["cluster_detection_method"] is None

  def fails(*args, **options):
    raise ValueError("coordinator_address should be defined.")

  monkeypatch.setattr(jax.distributed, "initialize", fails)
  with pytest.raises(InputError, match=r"a launcher started several processes.*--coordinator, --hosts and --host"):
    hosts.join(Cluster())


def test_the_flags_go_before_what_a_launcher_says(initialized, monkeypatch):
  monkeypatch.setenv("JOB_COMPLETION_INDEX", "0")
  hosts.join(Cluster("10.0.0.1:8476", 3, 2))
  [(asked, options)] = initialized
  assert asked == ("10.0.0.1:8476", 3, 2) and options["cluster_detection_method"] == "deactivate"


class Processes:
  """`train.py` on several hosts, as processes with so many devices each.

  Each has a working directory and a cache of its own, as on disks of their own; a
  run folder can be made by the first alone.
  """

  def __init__(self, folder: Path, workdir: Path, configs: list[Config], devices: int = 1):
    port = _free_port()
    self.all = []
    for host, config in enumerate(configs):
      own = folder / f"host{host}"
      own.mkdir(exist_ok=True)
      file = own / "config.py"
      file.write_text(
        f"from transformer_jax import config_values\nimport json\nTEXT = {to_json(config)!r}\n"
        "def get_config():\n  return config_values.from_dict(json.loads(TEXT))\n"
      )
      flags = [f"--config={file}", f"--workdir={workdir if host == 0 else '/dev/null/nowhere'}"]
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


def _free_port() -> int:
  with socket.socket() as listener:
    listener.bind(("localhost", 0))
    return listener.getsockname()[1]


def trained(
  folder: Path, workdir: Path, config: Config, *, count: int = 1, devices: int = 1
) -> list[tuple[int, str, str]]:
  ends = Processes(folder, workdir, [config] * count, devices).end()
  assert [status for status, _, _ in ends] == [0] * count, ends
  return ends


def state_of(workdir: Path, config: Config):
  checkpoints = checkpoint.Checkpoints(epath.Path(workdir), 2)
  restored = checkpoints.restore(abstract_state(config))
  checkpoints.close()
  assert restored is not None
  return jax.device_get(restored.state)


def assert_equal_to_rounding(a: Path, b: Path, config: Config) -> None:
  """Checkpoint and metrics of two runs.

  Keys' biases change no softmax: their gradients are rounding errors, of which Adam makes steps as large as any.
  """

  def check(path, x, y):
    if not jax.tree_util.keystr(path).endswith("['key']['bias']"):
      np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5, err_msg=jax.tree_util.keystr(path))

  jax.tree_util.tree_map_with_path(check, state_of(a, config), state_of(b, config))
  ours, theirs = metrics_of(a), metrics_of(b)
  assert len(ours) == len(theirs) > 0
  for one, other in zip(ours, theirs, strict=True):
    assert one == {
      key: pytest.approx(value, rel=1e-5) if isinstance(value, float) else value for key, value in other.items()
    }


def assert_same_bits(a: Path, b: Path, config: Config) -> None:
  jax.tree.map(np.testing.assert_array_equal, state_of(a, config), state_of(b, config))
  assert metrics_of(a) == metrics_of(b)


def test_two_hosts_go_on_with_a_run_of_eight_devices(prefix, tmp_path):
  """Dropout is on; the other host has no run folder."""
  config = tiny(prefix, steps=4)
  loop.train(config, epath.Path(tmp_path / "whole"))
  loop.train(tiny(prefix, steps=2), epath.Path(tmp_path / "parts"))
  (_, _, log), (_, _, log_of_other) = trained(tmp_path, tmp_path / "parts", config, count=2)
  assert "resuming after step 2" in log and "'hosts': 2" in log
  assert log_of_other == ""
  assert_equal_to_rounding(tmp_path / "whole", tmp_path / "parts", config)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_several_hosts_do_what_one_does(prefix, tmp_path, count):
  """They share out the sentences to translate, too, and one of them prints the scores."""
  config = tiny(prefix, steps=10, translations=True)
  trained(tmp_path, tmp_path / "one", config)
  ends = trained(tmp_path, tmp_path / "several", config, count=count)
  assert_equal_to_rounding(tmp_path / "one", tmp_path / "several", config)
  [(_, scores, _)] = trained(tmp_path, tmp_path / "several", config)  # of the very same parameters
  assert [out for _, out, _ in ends] == [scores] + [""] * (count - 1)
  assert [bool(log) for _, _, log in ends] == [True] + [False] * (count - 1)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["luong", "gpt", "bert", "elmo"])
def test_two_hosts_train_the_other_models_too(prefix, tmp_path, model):
  config = tiny(prefix)
  sizes = {"vocab_size": 290, "num_layers": 1, "d_model": 8, "dropout": 0.1}
  blocks = {"d_ff": 16, "num_heads": 2, "max_positions": 16}
  models = {
    "luong": LuongConfig(**sizes, hidden_size=7),
    "gpt": GPTConfig(**sizes, **blocks),
    "bert": BERTConfig(**sizes, **blocks),
    "elmo": ELMoConfig(**sizes),
  }
  data = config.data
  if model != "luong":
    data = dataclasses.replace(data, train=f"{prefix}.en", validation=f"{prefix}.de", document=Document.LINE)
  config = dataclasses.replace(config, model=models[model], data=data)
  trained(tmp_path, tmp_path / "one", config)
  trained(tmp_path, tmp_path / "two", config, count=2)
  assert_equal_to_rounding(tmp_path / "one", tmp_path / "two", config)


@pytest.mark.slow
@pytest.mark.parametrize("parts", [[(1, 8), (1, 1), (1, 4)], [(1, 1), (2, 1), (1, 1)]], ids=["devices", "hosts"])
def test_their_numbers_may_change_between_the_parts_of_a_run(prefix, tmp_path, parts):
  count, devices = parts[0]
  trained(tmp_path, tmp_path / "whole", tiny(prefix), count=count, devices=devices)
  for steps, (count, devices) in zip((2, 4, 6), parts, strict=True):
    trained(tmp_path, tmp_path / "parts", tiny(prefix, steps=steps), count=count, devices=devices)
  assert_equal_to_rounding(tmp_path / "whole", tmp_path / "parts", tiny(prefix))


def wait_for_lines(processes: Processes, workdir: Path, count: int) -> None:
  """Until the log has so many lines."""
  metrics, limit = workdir / "metrics.jsonl", time.monotonic() + 400
  while not (metrics.exists() and metrics.read_text().count("\n") >= count):
    assert all(process.poll() is None for process in processes.all), processes.end()
    assert time.monotonic() < limit
    time.sleep(0.01)


LONG = {"steps": 100, "save_every": 10, "every": 20}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("asked", [0, 1])
def test_a_signal_to_one_host_stops_all_after_the_same_step(prefix, tmp_path, number, asked):
  config = tiny(prefix, **LONG)
  processes = Processes(tmp_path, tmp_path / "parts", [config] * 2)
  wait_for_lines(processes, tmp_path / "parts", 5)
  processes.all[asked].send_signal(number)
  ends = processes.end()
  assert [status for status, _, _ in ends] == [128 + number] * 2, ends
  stopped = re.search(rf"stopped by {signal.Signals(number).name} after step (\d+);", ends[0][2])
  steps = [int(path.name) for path in (tmp_path / "parts" / "checkpoints").iterdir() if path.name.isdigit()]
  assert stopped and max(steps) == int(stopped[1]) < 100


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_host_ends_the_others_and_the_restart_of_all_goes_on(prefix, tmp_path, killed):
  config = tiny(prefix, **LONG)
  trained(tmp_path, tmp_path / "whole", config, count=2)
  processes = Processes(tmp_path, tmp_path / "parts", [config] * 2)
  wait_for_lines(processes, tmp_path / "parts", 25)
  processes.all[killed].kill()
  since = time.monotonic()
  ends = processes.end()
  assert time.monotonic() - since < 120  # without the hundred seconds of silence, but for a busy machine
  assert ends[killed][0] == -signal.SIGKILL
  status, _, error = ends[1 - killed]
  assert status == 1, ends
  assert "cannot go on" in error.splitlines()[-1] and "Traceback" not in error
  trained(tmp_path, tmp_path / "parts", config, count=2)
  assert_same_bits(tmp_path / "whole", tmp_path / "parts", config)


def refused(folder: Path, configs: list[Config]) -> list[str]:
  ends = Processes(folder, folder / "run", configs).end()
  assert [status for status, _, _ in ends] == [2] * len(configs), ends
  errors = [error.splitlines()[-1] for _, _, error in ends]
  assert all(error.startswith("train.py: error: ") for error in errors) and "Traceback" not in str(ends)
  return errors


@pytest.mark.slow
def test_hosts_with_other_settings_or_another_text_are_refused(prefix, tmp_path):
  for error in refused(tmp_path, [tiny(prefix), tiny(prefix, seed=1)]):
    assert "config.train.seed is 0 on host 0, but 1 on host 1" in error
  for host in range(2):  # the same path, on disks of their own
    for language in ("en", "de"):
      shutil.copy(f"{prefix}.{language}", tmp_path / f"host{host}" / f"text.{language}")
  (tmp_path / "host1" / "text.de").write_text(Path(f"{prefix}.de").read_text().replace("elf", "zwölf"))
  for error in refused(tmp_path, [tiny("text")] * 2):
    assert "the text of config.data.train is" in error and error.endswith("give all hosts the same text")


@pytest.mark.slow
def test_a_mistake_on_one_host_is_said_by_all(prefix, tmp_path):
  (tmp_path / "run").write_text("")
  mine, others = refused(tmp_path, [tiny(prefix)] * 2)
  assert "run folder" in mine and "host 0" not in mine
  assert "host 0: the run folder" in others


def joined(program: str, environments: list[dict[str, str]]) -> list[tuple[int, str, str]]:
  """What processes say that do no more than to join, in these environments."""
  program = f"from transformer_jax import hosts\nfrom transformer_jax.flags import Cluster\n{program}"
  platform = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""}
  processes = [
    subprocess.Popen(
      [sys.executable, "-c", program],
      env=os.environ | platform | environment,
      text=True,
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
    )
    for environment in environments
  ]
  said = [process.communicate(timeout=300) for process in processes]
  return [(process.returncode, *text) for process, text in zip(processes, said, strict=True)]


# What JAX makes a port of: the number of the job, in the last 4,096 ports.
def slurm(host: int, job: int) -> dict[str, str]:
  of_all = {"SLURM_JOB_ID": str(job), "SLURM_STEP_NODELIST": "localhost", "SLURM_NTASKS": "2"}
  return of_all | {"SLURM_PROCID": str(host), "SLURM_LOCALID": str(host)}


def open_mpi(host: int, job: int) -> dict[str, str]:
  of_all = {"OMPI_MCA_orte_hnp_uri": f"{job << 12}.0;tcp://127.0.0.1:1", "OMPI_COMM_WORLD_SIZE": "2"}
  return of_all | {"OMPI_COMM_WORLD_RANK": str(host), "OMPI_COMM_WORLD_LOCAL_RANK": str(host)}


@pytest.mark.slow
@pytest.mark.parametrize("launcher", [slurm, open_mpi])
def test_jax_finds_the_hosts_in_what_a_launcher_says(launcher):
  job = next(job for job in range(os.getpid() % 4000, 4096) if _is_free(job + 65536 - 4096))
  ends = joined("hosts.join(Cluster())\nprint(hosts.gather('here'))", [launcher(host, job) for host in range(2)])
  assert [(status, out.splitlines()[-1]) for status, out, _ in ends] == [(0, "['here', 'here']")] * 2, ends


def _is_free(port: int) -> bool:
  with socket.socket() as listener:
    return listener.connect_ex(("localhost", port)) != 0


@pytest.mark.slow
def test_hosts_that_do_not_meet_end_with_a_sentence():
  program = f"hosts._SECONDS_TO_MEET = 3\nhosts.join(Cluster('localhost:{_free_port()}', 2, 1))"
  [(status, _, error)] = joined(program, [{}])
  assert status == 1 and "error: the hosts did not meet within 3 seconds" in error.splitlines()[-1]


def test_a_port_in_use_is_refused_by_the_first_host():
  message = r"--coordinator=localhost:\d+: .*in use.*choose another port"
  with socket.create_server(("", 0)) as listener, pytest.raises(InputError, match=message):
    hosts.join(Cluster(f"localhost:{listener.getsockname()[1]}", 2, 0))
