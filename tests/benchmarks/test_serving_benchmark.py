"""benchmarks/serving.py: which run folder its servers get."""

import sys

import pytest


@pytest.mark.parametrize("name", ["run", "~/run"])
def test_a_relative_run_folder_is_the_callers(program, tmp_path, monkeypatch, name):
  pytest.importorskip("tabulate")
  serving, seen = program("serving"), []
  (tmp_path / "lines").write_text("a\n")
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv("HOME", str(tmp_path))
  monkeypatch.setattr(serving, "clients", lambda args: seen.append(serving.ours(args)))
  monkeypatch.setattr(sys, "argv", ["serving.py", "clients", "--workdir", name, "--data", "lines"])
  serving.main()
  [command] = seen
  assert command[command.index("--workdir") + 1] == str(tmp_path / "run")
