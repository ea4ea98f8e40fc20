"""benchmarks/programs.py: how a program ends, and which files it makes."""

import subprocess
import sys

import pytest

from transformer_jax.runtime.errors import InputError


@pytest.fixture
def programs(program, monkeypatch):
  monkeypatch.setattr(sys, "argv", ["folder/some.py"])
  return program("programs")


@pytest.mark.parametrize(
  ("error", "status"),
  [
    (InputError("no such file"), "some.py: error: no such file"),
    (subprocess.CalledProcessError(2, "translate"), 2),  # which has told why
    (subprocess.CalledProcessError(-9, "translate"), "Command 'translate' died with <Signals.SIGKILL: 9>."),
    (subprocess.CalledProcessError(2, "git", stderr="why"), "Command 'git' returned non-zero exit status 2."),
  ],
)
def test_a_known_error_ends_the_program_without_a_traceback(programs, capsys, error, status):
  def main():
    raise error

  with pytest.raises(SystemExit) as ended:
    programs.run(main)
  assert ended.value.code == status
  assert capsys.readouterr().err == ("why\n" if getattr(error, "stderr", None) else "")


def test_a_fault_of_the_program_keeps_its_traceback(programs):
  with pytest.raises(ZeroDivisionError):
    programs.run(lambda: 1 // 0)


def test_a_file_is_made_once_and_as_a_whole(programs, tmp_path):
  file = tmp_path / "made"

  def fails():
    raise InputError("no translation")

  with pytest.raises(InputError):
    programs.once(file, fails)
  assert not [*tmp_path.iterdir()]
  for content in (b"first", b"second"):
    programs.once(file, lambda content=content: content)
  assert file.read_bytes() == b"first"


def test_results_of_other_settings_are_not_taken_for_these(programs, tmp_path):
  for _ in range(2):
    programs.require_settings(tmp_path / "new", {"models": ["a"]})
  (tmp_path / "old").mkdir()
  (tmp_path / "old" / "table.md").touch()
  for output, models in (("new", ["b"]), ("old", ["a"])):
    with pytest.raises(SystemExit, match=f"{output} has results of other settings: choose another --output"):
      programs.require_settings(tmp_path / output, {"models": models})
