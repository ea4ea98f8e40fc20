"""Trains a model: without flags that of the first example, configs/numbers.py. The same command, or --workdir alone,
resumes a run that was stopped. On several hosts it is called once on each (docs/clusters.md); if no platform connects
them, --coordinator, --hosts and --host do.
"""

import argparse
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from transformer_jax.commands.experiment import add_config_arguments, read_config, read_keys
from transformer_jax.commands.workdir import add_accept_edits
from transformer_jax.config import Config, flags, serialization
from transformer_jax.runtime.errors import InputError, first_line
from transformer_jax.runtime.files import cache_beside
from transformer_jax.runtime.process import ended_at_once_by_ctrl_c
from transformer_jax.runtime.progress import doing, mute, say
from transformer_jax.runtime.values import Json

if TYPE_CHECKING:  # --help must not wait for this import
  from etils import epath


class Cluster(NamedTuple):
  """This process' place among several hosts; the attributes are None if the platform tells it.

  Attributes:
    coordinator: HOST:PORT on host 0, a free port that all hosts can reach.
    hosts: the number of hosts; 1 means this process alone, on any platform.
    host: the number of this host, from 0.
  """

  coordinator: str | None = None
  hosts: int | None = None
  host: int | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
  add = parser.add_argument
  add_config_arguments(parser, "that of the run in --workdir; without --workdir the first example")
  add("--workdir", metavar="DIR", help="the run folder, which is made (default: runs/NAME, by the config file's name)")
  add_accept_edits(parser)
  add("--coordinator", metavar="HOST:PORT", help="a free address on host 0 that all hosts can reach")
  add("--hosts", type=int, metavar="N", help="the number of hosts; 1: this process works alone")
  add("--host", type=int, metavar="I", help="the number of this host, from 0")


def run(args: argparse.Namespace) -> None:
  cluster = _checked(Cluster(args.coordinator, args.hosts, args.host))
  if cluster.host:
    mute()  # host 0 prints the same
  keys = read_keys(args)
  # The config of a run in --workdir is read later, as perhaps only the main host has that folder.
  config = None if args.workdir and not args.config else read_config(args)
  workdir = args.workdir or os.path.join("runs", flags.run_name(args.config))
  if kept := cache_beside(workdir):
    say(f"there is no home folder: packed rows are kept in {kept}, and compiled programs are not kept")
  with ended_at_once_by_ctrl_c():
    _train(args, config, keys, workdir, cluster, keeps_programs=not kept)


def _train(
  args: argparse.Namespace,
  config: Config | None,
  keys: Mapping[str, Json],
  workdir: str,
  cluster: Cluster,
  keeps_programs: bool,
) -> None:
  with doing("loading JAX"):
    from absl import logging

    from transformer_jax.runtime.compilation_cache import use_compilation_cache

    logging.set_verbosity(logging.FATAL)  # the libraries log much, and also log the errors that they raise
    if keeps_programs:  # beside the run folder there could be a stranger's
      use_compilation_cache()
    from transformer_jax.runtime import devices, hosts
  with doing("waiting for the other hosts"):
    hosts.join(*cluster)
  with doing("loading the libraries that train"):
    from transformer_jax.runs import run_folder
    from transformer_jax.trainer.loop import train

  devices.require_devices()
  with hosts.explain_peer_failure():
    place = "the file of --config" if config else "the run in --workdir"
    flags_here = {"the place of the config": place, "--config.train.init_from": str(keys.get("train.init_from", ""))}
    hosts.require_equal(flags_here, "call the same command on all hosts")
    with hosts.collective_errors():
      folder = run_folder.folder_of(workdir)
    train(_config_to_train(args, config, keys, folder), folder, accept_edits=args.accept_edits)
    if devices.is_main_host():
      _report(folder)
    hosts.barrier()  # a host that ends while another one works would soon give it up


def _config_to_train(
  args: argparse.Namespace, config: Config | None, keys: Mapping[str, Json], folder: "epath.Path"
) -> Config:
  """The config of this start, where `config` is that of --config; every host calls it."""
  from transformer_jax.runs import init_from, resume

  begun_with = None
  if config is None:
    begun_with = resume.config_of_run(folder, accept_edits=args.accept_edits)
    config = serialization.changed(begun_with, keys) if begun_with else _config_of_new_run(args, keys)
  if begun_with is not None and "train.init_from" not in keys:
    return config  # its sizes were chosen when it began
  return init_from.config_to_train_with(config, keys, folder, accept_edits=args.accept_edits)


def _config_of_new_run(args: argparse.Namespace, keys: Mapping[str, Json]) -> Config:
  """The config of the first example; InputError without a key, as then a run was to go on."""
  if not keys:
    raise InputError(
      f"{args.workdir} holds no run that could go on: check --workdir, or begin one there with --config, as in "
      "--config=numbers"
    )
  return read_config(args)


def _report(folder: "epath.Path") -> None:
  """Writes the report of a finished run; a failure is a line on standard error, as the run itself is good."""
  try:
    with doing("writing the report of the run"):
      from transformer_jax import runs
      from transformer_jax.inside import report
      from transformer_jax.runs.run_folder import REPORT
      from transformer_jax.trainer.summary import short_path

      report.write([runs.open(folder)], folder / REPORT)
    say(f"a report of the run is in\n  {short_path(folder / REPORT)}")
  except Exception as error:
    say(f"the report of the run could not be written: {first_line(error)}")


def _checked(cluster: Cluster) -> Cluster:
  """Returns the cluster, or raises InputError if its flags do not fit together."""
  coordinator, hosts, host = cluster
  if hosts is not None and hosts < 1:
    raise InputError(f"--hosts is {hosts}, but must be positive")
  if cluster in (Cluster(), Cluster(hosts=1)):
    return cluster
  missing = [f"--{name}" for name, value in cluster._asdict().items() if value is None]
  if coordinator is None or hosts is None or host is None:
    raise InputError(f"--coordinator, --hosts and --host belong together: add {' and '.join(missing)}")
  if not 0 <= host < hosts:
    raise InputError(f"--host is {host}, but must be from 0 to {hosts - 1}, as --hosts is {hosts}")
  name, _, port = coordinator.rpartition(":")
  if not name or not port.isdecimal() or len(port) > 5 or not 0 < int(port) < 1 << 16:
    raise InputError(f"--coordinator is {coordinator!r:.80}, but must be HOST:PORT, as in 10.0.0.1:8476")
  return cluster
