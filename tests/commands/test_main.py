"""How any command ends: its help, the user's mistakes, closed streams."""

import subprocess
import sys

import pytest

from transformer_jax.__main__ import main


@pytest.mark.parametrize(
  ("command", "name", "stream"),
  [
    ("translate", "stdin", "standard input"),
    ("translate", "stdout", "standard output"),
    ("generate", "stdin", "standard input"),
    ("fidelity", "stdout", "standard output"),
  ],
)
def test_closed_streams_are_one_sentence(workdir, capfd, monkeypatch, command, name, stream):
  with open("/dev/null") as nothing, monkeypatch.context() as patch:
    patch.setattr(sys, "stdin", nothing)
    patch.setattr(sys, name, None)
    assert main([command, *(["--workdir", workdir] if command != "fidelity" else [])]) == 2
  out, err = capfd.readouterr()
  assert out == "" and err.count("\n") == 1 and f"{stream} is closed" in err


def test_where_nobody_hears_errors_they_are_not_output(capfd, monkeypatch):
  with monkeypatch.context() as patch:
    patch.setattr(sys, "stderr", None)
    assert main(["score", "--hypotheses", "/nowhere", "--reference", "/nowhere"]) == 2
    sys.stderr.close()
  assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
  ("argv", "message"),
  [
    ([], "a command is missing; there are plan, translate, evaluate, score"),
    (["translat"], "'translate', 'evaluate'"),
    (["translate"], "required: --workdir"),
    (["translate", "--workdir", "/nowhere"], "/nowhere is not a run folder"),
    (["translate", "--workdir", "W", "--beam-size", "x"], "--beam-size"),
    (["translate", "--workdir", "W", "--beam", "3"], "--beam"),
    (["evaluate", "--workdir", "W", "--source", "S", "--reference", "/nowhere"], "/nowhere"),
    (["evaluate", "--workdir", "W", "--source", "S", "--reference", "S", "--tokenize", "x"], "'x' is not a token"),
    (["evaluate", "--workdir", "W", "--source", "S", "--reference", "S", "--hypotheses", "/nowhere/f"], "--hypotheses"),
    (["evaluate", "--workdir", "W", "--source", "S", "--reference", "S", "--compare", "/nowhere"], "/nowhere"),
    (["score", "--reference", "S"], "required: --hypotheses"),
    (["score", "--hypotheses", "S", "--reference", "/nowhere"], "/nowhere"),
    (["score", "--hypotheses", "S", "--reference", "S", "--tokenize", "x"], "'x' is not a token"),
    (["score", "--hypotheses", "S", "--reference", "S", "--languages", "de"], "--languages"),
    (["score", "--hypotheses", "S", "--reference", "S", "--workdir", "W"], "--workdir"),
  ],
)
def test_a_mistake_ends_in_one_line_and_status_2(run, workdir, files, argv, message):
  names = {"W": workdir, "S": str(files / "a.en")}
  status, out, err = run(*[names.get(argument, argument) for argument in argv])
  assert (status, out) == (2, "")
  assert len(err) == 1 and err[0].startswith("transformer-jax: error: ") and message in err[0]


def test_help_does_not_wait_for_jax():
  program = "import sys; from transformer_jax.__main__ import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
  program += "sys.exit(bool({'jax', 'numpy', 'sacrebleu', 'sacremoses'} & sys.modules.keys()))"
  result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
  assert result.returncode == 0, result.stderr
  assert "translate" in result.stdout and "evaluate" in result.stdout and "score" in result.stdout
