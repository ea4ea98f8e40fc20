"""How any command ends: its help, the user's mistakes, closed streams."""

import argparse
import errno
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from transformer_jax.__main__ import _parser, main
from transformer_jax.commands.endings import ending
from transformer_jax.runtime import versions

ROOT = Path(__file__).parents[2]


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


@pytest.mark.parametrize(
  "argv",
  [
    ["average", "--workdir", "/nowhere", "--last", "2", "--output", "OUT"],
    ["export", "--workdir", "/nowhere", "--to", "safetensors", "--output", "OUT"],
    ["import", "/nowhere", "--from", "gpt2", "--workdir", "OUT"],
  ],
  ids=lambda argv: argv[0],
)
def test_what_needs_no_accelerator_leaves_it_to_a_training(tmp_path, monkeypatch, capfd, argv):
  told, update = [], jax.config.update
  monkeypatch.setattr(jax.config, "update", lambda *given: told.append(given) or update(*given))
  assert main([str(tmp_path / "out") if word == "OUT" else word for word in argv]) == 2
  assert ("jax_platforms", "cpu") in told


def test_where_nobody_hears_errors_they_are_not_output(capfd, monkeypatch):
  with monkeypatch.context() as patch:
    patch.setattr(sys, "stderr", None)
    assert main(["score", "--hypotheses", "/nowhere", "--reference", "/nowhere"]) == 2
    sys.stderr.close()
  assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
  ("argv", "message"),
  [
    ([], "a command is missing; there are train, plan, translate, backtranslate"),
    (["translat"], "'translat' is not a command (did you mean translate or backtranslate?); there are train, plan"),
    (["score", "--hypotheses", "https://a/b", "--reference", "S"], "https://a/b is neither a path on this machine nor"),
    (
      ["translate", "--workdir", "hdfs://a/b"],
      "hdfs://a/b is neither a path on this machine nor one in a bucket, such as gs://",
    ),
    (["translate", "--workdir", "/s3/run"], "/s3/run would be read as s3://run, which is in a bucket"),
    (["--config=numbers"], "a command must come before --config=numbers; there are train, plan, translate"),
    (["translate", "--workdir", "W", "-x"], "unrecognized arguments: -x; `transformer-jax translate --help`"),
    (["translate"], "required: --workdir"),
    (
      ["translate", "--wrkdir", "W"],
      "--wrkdir is not a flag of `transformer-jax translate` (did you mean --workdir?); `",
    ),
    (["translate", "--n-best=3", "--"], "required: --workdir"),
    (["train", "--steps=400"], "--steps is not a flag of `transformer-jax train` (did you mean --config.train.steps?)"),
    (["train", "--train.batch-tokens=4"], "(did you mean --config.train.batch_tokens?); `"),
    (["translate", "--workdir", "/nowhere"], "/nowhere is not a run folder"),
    (["translate", "--workdir", "W", "--beam-size", "x"], "argument --beam-size: 'x' is not a whole number; `transf"),
    (["translate", "--workdir", "W", "--patience", "x"], "argument --patience: 'x' is not a number; `transf"),
    (
      ["translate", "--workdir", "W", "--beam", "3"],
      "--beam is not a flag of `transformer-jax translate` (did",
    ),
    (["average", "--workdir", "W", "--last", "1", "--output", "x", "y"], "unrecognized arguments: y; `transformer"),
    (
      ["translate", "--workdir", "W", "in.en"],
      "unrecognized arguments: in.en; it reads standard input, as in `transformer-jax translate ... < in.en`; `trans",
    ),
    (["evaluate", "--workdir", "W", "--source", "S", "--reference", "/nowhere"], "/nowhere"),
    (["evaluate", "--workdir", "W", "--source", "S", "--reference", "S", "--tokenize", "x"], "'x' is not a token"),
    (["evaluate", "--workdir", "W", "--source", "S", "--reference", "S", "--hypotheses", "/nowhere/f"], "--hypotheses"),
    (["evaluate", "--workdir", "W", "--source", "S", "--reference", "S", "--compare", "/nowhere"], "/nowhere"),
    (
      ["evaluate", "--workdir", "W", "--source", "S", "--reference", "S", "--hypotheses", ""],
      "--hypotheses is empty: give it a name, or leave it out",
    ),
    (["import", "", "--from", "bert", "--workdir", "W"], "PATH is empty: give it a name"),
    (["evaluate", "--workdir", "W", "--workdir", "", "--source", "S", "--reference", "S"], "--workdir is empty"),
    (["rerank", "--n-best", "S", "--weights", "w", "--reference", ""], "--reference is empty"),
    (
      ["score", "--hypotheses", "S", "--reference", "S", "--reference=S"],
      "--reference is given 2 times, but takes one name: leave out the others",
    ),
    (["average", "--workdir", "W", "--workdir", "W", "--last", "1", "--output", "x"], "--workdir is given 2 times"),
    (["train", "--config=", "--workdir", "W"], "--config is empty: give it a name, or leave it out"),
    (["plan", "--config=numbers", "--config=base"], "--config is given 2 times"),
    (
      ["attention", "--workdir", "W", "--output", "x", "--sentence", "-Ja"],
      "argument --sentence: expected one argument (one that begins with - stands behind =, as in --flag=-x); `transf",
    ),
    (
      ["rerank", "--n-best", "S", "--weights", "w", "--step", "5"],
      "--step is 5, but must be left out without a model, such as --forward DIR",
    ),
    (["rerank", "--n-best", "S", "--weights", "w", "--batch-size", "0"], "--batch-size is 0, but must be left out"),
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


def test_the_version(run):
  assert run("--version") == (0, f"{versions.own_version()}\n", [])


def test_no_module_is_taken_from_the_folder_that_it_is_called_in(tmp_path):
  names = ("argparse", "json", "numpy", "re", "sacrebleu", "sentencepiece", "tqdm", "typing", "zlib")
  for name in names:
    (tmp_path / f"{name}.py").write_text(f"open('{name}.was_run', 'w').close()\nraise SystemExit(9)\n")
  (tmp_path / "a").write_text("one two three four\n")
  done = subprocess.run(
    [sys.executable, "-m", "transformer_jax", "score", "--hypotheses=a", "--reference=a"],
    cwd=tmp_path,
    env={**os.environ, "PYTHONPATH": str(ROOT)},
    capture_output=True,
    text=True,
  )
  assert (done.returncode, done.stderr) == (0, "") and "BLEU" in done.stdout
  assert not list(tmp_path.glob("*.was_run"))


def test_a_checkout_that_is_not_installed_is_run_from_its_own_folder(tmp_path):
  shutil.copytree(
    ROOT / "transformer_jax", tmp_path / "transformer_jax", ignore=shutil.ignore_patterns("__pycache__", ".*")
  )
  error = "raise SystemExit('this is the copy')\n"
  (tmp_path / "transformer_jax" / "runtime" / "process.py").write_text(error)
  environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
  program = [sys.executable, "-m", "transformer_jax", "--help"]
  done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True)
  assert (done.returncode, done.stdout, done.stderr) == (1, "", "this is the copy\n")


def test_help_does_not_wait_for_jax():
  program = (
    "import sys; from transformer_jax.__main__ import main\n"
    "try: main(['--help'])\nexcept SystemExit: pass\nmain(['train', '--help', '--config=table3:big'])\n"
  )
  program += "sys.exit(bool({'jax', 'numpy', 'sacrebleu', 'sacremoses'} & sys.modules.keys()))"
  result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
  assert result.returncode == 0, result.stderr
  assert "translate" in result.stdout and "evaluate" in result.stdout and "score" in result.stdout


def test_a_command_has_one_sentence_in_the_list(capsys):
  with pytest.raises(SystemExit):
    main(["--help"])
  lines = capsys.readouterr().out.partition("commands:")[2].splitlines()
  assert not [line for line in lines if re.search(r"\.( \D|$)", line)]


@pytest.mark.parametrize(
  "flags",
  [
    ["draw", "masks", "--output", "~nobody-has-this-name/a.svg"],
    ["clean", "--data", "x", "--output", "~nobody-has-this-name/a"],
  ],
)
def test_the_home_of_an_unknown_user_is_one_sentence(flags, capfd):
  assert main(flags) == 2
  [error] = capfd.readouterr().err.splitlines()
  assert "error: " in error


@pytest.mark.parametrize(
  ("number", "sentence"),
  [
    (
      errno.ENOSPC,
      "cannot write standard output, or a temporary file: {}; what was saved before is untouched: make room, and give "
      "the same command again",
    ),
    (
      errno.EMFILE,
      f"standard output, or a temporary file: [Errno {errno.EMFILE}] {{}}; what was saved before is untouched",
    ),
  ],
)
def test_an_error_of_the_system_without_a_name_has_advice_where_there_is_one(number, sentence):
  found = ending(OSError(number, os.strerror(number)), "score")
  assert found == (1, sentence.format(os.strerror(number)))


def defaults(parser):
  """What the help of each flag says of its default, and the default."""
  for action in parser._actions:
    if isinstance(action, argparse._SubParsersAction):
      for each in action.choices.values():
        yield from defaults(each)
    said = re.search(r"\(default:? ([^(),]+)", action.help or "")
    if said and action.default not in (None, "", argparse.SUPPRESS):
      values = action.default if isinstance(action.default, list | tuple) else [action.default]
      yield said[1], " ".join(f"{value:g}" if type(value) in (int, float) else str(value) for value in values)


@pytest.mark.parametrize(
  ("command", "advice"),
  [
    ("train", "raise config.train.accumulation, which changes no result, or lower config.train.batch_tokens; "),
    ("backtranslate", "give a smaller --batch-size and another --output, "),
    ("translate", "give a smaller --batch-size or --beam-size if "),
  ],
)
def test_memory_that_is_exhausted_has_the_advice_of_the_command(command, advice):
  status, sentence = ending(MemoryError(), command)
  assert status == 1 and sentence.startswith(f"memory is exhausted: {advice}")


def test_the_help_says_the_defaults():
  in_words = {"all": "0", "no": "False"}  # of --top-k, and of `score --lowercase`
  found = list(defaults(_parser()))
  assert len(found) > 30 and not [pair for pair in found if in_words.get(pair[0], pair[0]) != pair[1]]


def test_a_current_folder_that_is_gone_is_said(monkeypatch, tmp_path, capfd):
  (gone := tmp_path / "gone").mkdir()
  monkeypatch.chdir(gone)
  gone.rmdir()
  assert main(["average", "--workdir", "run", "--last", "1", "--output", "out"]) == 2
  assert "error: the current folder is no longer there: change to one that is" in capfd.readouterr().err
