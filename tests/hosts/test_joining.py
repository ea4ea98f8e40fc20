"""How a process learns which of several hosts it is, and what it says when they do not meet."""

import os
import socket
import subprocess
import sys

import jax
import pytest

from tests.hosts.processes import free_port
from transformer_jax.runtime import hosts
from transformer_jax.runtime.errors import InputError, RunError


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
  hosts.join()
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
  hosts.join(hosts=1)
  assert not initialized
  hosts.join()
  [(asked, options)] = initialized
  assert asked == (None, None, None) and options["cluster_detection_method"] is None

  def fails(*args, **options):
    raise ValueError("coordinator_address should be defined.")

  monkeypatch.setattr(jax.distributed, "initialize", fails)
  with pytest.raises(InputError, match=r"a launcher started several processes.*--coordinator, --hosts and --host"):
    hosts.join()


def test_the_flags_go_before_what_a_launcher_says(initialized, monkeypatch):
  monkeypatch.setenv("JOB_COMPLETION_INDEX", "0")
  hosts.join("10.0.0.1:8476", 3, 2)
  [(asked, options)] = initialized
  assert asked == ("10.0.0.1:8476", 3, 2) and options["cluster_detection_method"] == "deactivate"


def joined(program: str, environments: list[dict[str, str]]) -> list[tuple[int, str, str]]:
  """What processes say that do no more than to join, in these environments."""
  program = f"from transformer_jax.runtime import hosts\n{program}"
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
  ends = joined("hosts.join()\nprint(hosts.gather('here'))", [launcher(host, job) for host in range(2)])
  assert [(status, out.splitlines()[-1]) for status, out, _ in ends] == [(0, "['here', 'here']")] * 2, ends


def _is_free(port: int) -> bool:
  with socket.socket() as listener:
    return listener.connect_ex(("localhost", port)) != 0


@pytest.mark.slow
def test_hosts_that_do_not_meet_end_with_a_sentence():
  program = f"hosts._SECONDS_TO_MEET = 3\nhosts.join('localhost:{free_port()}', 2, 1)"
  [(status, _, error)] = joined(program, [{}])
  assert status == 1 and "error: the hosts did not meet within 3 seconds" in error.splitlines()[-1]


def test_a_host_that_jax_cannot_connect_does_not_work_alone(monkeypatch):
  def initialize(*arguments, **options):
    raise ValueError("invalid literal for int() with base 10: '0;1'")  # as JAX does

  monkeypatch.setattr(jax.distributed, "initialize", initialize)
  with pytest.raises(InputError, match=r"JAX cannot connect host 1 of --hosts=2: .*JAX_LOCAL_DEVICE_IDS if it is set"):
    hosts._met("localhost:1", 2, 1)


def test_a_port_in_use_is_refused_by_the_first_host():
  message = r"--coordinator=localhost:\d+: .*in use.*choose another port"
  with socket.create_server(("", 0)) as listener, pytest.raises(InputError, match=message):
    hosts.join(f"localhost:{listener.getsockname()[1]}", 2, 0)


REPORTED = """
import os, sys, time
import jax, numpy as np
from transformer_jax.runtime import devices
from transformer_jax.runtime.errors import InputError, RunError
HOST = int(os.environ["HOST"])
try:
  {body}
except (InputError, RunError) as error:
  print(error)
  sys.exit(error.exit_status)
"""


def by_flags(body: str, environments: list[dict[str, str]]) -> list[tuple[int, str]]:
  """The status and the last line of two hosts that do this, with `join()` to join."""
  join = f"hosts.join('localhost:{free_port()}', 2, HOST)"
  ends = joined(
    REPORTED.format(body=body.replace("join()", join)),
    [{"HOST": str(host), **environment} for host, environment in enumerate(environments)],
  )
  return [(status, out.splitlines()[-1]) for status, out, _ in ends]


def with_devices(count: int) -> dict[str, str]:
  return {"XLA_FLAGS": f"--xla_force_host_platform_device_count={count}"}


@pytest.mark.slow
def test_hosts_with_other_numbers_of_devices_are_refused():
  message = "host 0 has 1 devices, but host 1 has 2: give all hosts equally many"
  assert by_flags("join()", [with_devices(1), with_devices(2)]) == [(2, message)] * 2


@pytest.mark.slow
def test_a_host_that_dies_when_all_have_met_is_a_sentence_of_the_others():
  body = "hosts.barrier = (lambda: os._exit(9)) if HOST else hosts.barrier; join()"
  program = REPORTED.format(body=body.replace("join()", f"hosts.join('localhost:{free_port()}', 2, HOST)"))
  (status, out, _), _ = joined(program, [{"HOST": "0"}, {"HOST": "1"}])
  assert status == 1 and out.splitlines()[-1].startswith("host 0 cannot go on")


@pytest.mark.slow
def test_the_devices_of_all_hosts_are_connected_when_the_hosts_have_met():
  """Libraries wait 30 seconds for a group's first exchange; a host may compile its first update for longer."""
  body = (
    "join(); total = devices.over_devices(lambda _, x: devices.sum_over_devices(x.sum()), out_axes=None); "
    "time.sleep(40 * HOST); print(total((), devices.shard(np.ones((2, 3), np.float32))))"
  )
  assert by_flags(body, [with_devices(2)] * 2) == [(0, "12.0")] * 2


@pytest.mark.slow
def test_texts_of_other_lengths_need_no_new_program():
  body = (
    "join(); compiled = []; jax.monitoring.register_event_duration_secs_listener("
    "lambda name, *_, **__: compiled.append(name) if 'backend_compile' in name else None); "
    "texts = [hosts.gather('é' * n) for n in (140, 200, 250, 129)]; assert compiled; compiled.clear(); "
    "texts += [hosts.gather(f'{HOST}é' * n) for n in (0, 90, 120)]; "
    "assert texts[-2] == ['0é' * 90, '1é' * 90]; assert texts[4] == ['', '']; print(compiled)"
  )
  assert by_flags(body, [{}] * 2) == [(0, "[]")] * 2


def test_all_that_a_launcher_lacks_is_said(monkeypatch):
  """Kubernetes needs something of its job, which JAX tells in several lines."""

  def fails(*_, **options):
    raise RuntimeError("Pods need a headless service in order to\nfind each other: add\n  subdomain: jaxpods")

  monkeypatch.setattr(jax.distributed, "initialize", fails)
  with pytest.raises(RunError, match=r"in order to find each other: add +subdomain: jaxpods; start all"):
    hosts._met(None, None, None)


def test_a_machine_with_libtpu_asks_jax_for_its_slice_and_may_be_alone(initialized, monkeypatch):
  monkeypatch.setattr(hosts, "find_spec", lambda name: object() if name == "libtpu" else None)
  hosts.join()
  assert [asked for asked, _ in initialized] == [(None, None, None)]

  def fails(*args, **options):
    raise ValueError("coordinator_address should be defined.")

  monkeypatch.setattr(jax.distributed, "initialize", fails)
  hosts.join()  # there is no TPU
