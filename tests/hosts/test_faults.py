"""Hosts stop together, and say when one of them is missing or was given something else."""

import dataclasses
import re
import shutil
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.hosts.processes import Processes, assert_same_bits, tiny, trained, wait_for_lines
from transformer_jax.config import Config

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


def refused(folder: Path, configs: Sequence[Config | None]) -> list[str]:
  ends = Processes(folder, folder / "run", configs).end()
  assert [status for status, _, _ in ends] == [2] * len(configs), ends
  errors = [error.splitlines()[-1] for _, _, error in ends]
  assert all(error.startswith("transformer-jax: error: ") for error in errors) and "Traceback" not in str(ends)
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


@pytest.mark.slow
def test_hosts_of_which_one_has_no_config_are_refused(prefix, tmp_path):
  for error in refused(tmp_path, [tiny(prefix), None]):
    assert "the place of the config is 'the file of --config' on host 0, but 'the run in --workdir' on host 1" in error


@pytest.mark.slow
def test_a_failure_of_the_main_host_is_one_sentence_on_the_others(prefix, tmp_path):
  run = tmp_path / "run"
  processes = Processes(tmp_path, run, [tiny(prefix, **LONG)] * 2)
  wait_for_lines(processes, run, 5)
  run.rename(tmp_path / "moved")
  run.write_text("")  # the next checkpoint cannot be written
  (first, _, own), (second, _, error) = processes.end(timeout=200)
  assert (first, second) == (1, 1) and "could not be written" in own.splitlines()[-1]
  # The lines before it, if there are any, are of JAX's C++ functions.
  sentence = "transformer-jax: error: host 1 cannot go on, as "
  assert error.splitlines()[-1].startswith(sentence) and error.count(sentence) == 1


@pytest.mark.slow
def test_several_hosts_translate_a_test_text_that_is_too_long_for_rows(prefix, tmp_path):
  """As one host does: its sentences are never packed."""
  for language in ("en", "de"):
    (tmp_path / f"long.{language}").write_text("eins zwei drei vier\n" * 2)
  config = tiny(prefix, translations=True)
  config.data = dataclasses.replace(config.data, test=str(tmp_path / "long"))
  (_, out, error), _ = trained(tmp_path, tmp_path / "run", config, count=2)
  assert "2 sentences" in out + error
