"""The command line: what it prints where, and how it ends. `test_translator.py` shows that translations are right."""

import fcntl
import json
import os
import random
import subprocess
import sys
import threading

import pytest
from etils import epath

from transformer_jax import checkpoint, run_folder
from transformer_jax.__main__ import main
from transformer_jax.config import Config, DecodeConfig
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.decoding.translator import Translator
from transformer_jax.evaluation.report import content_hash
from transformer_jax.evaluation.scores import score
from transformer_jax.model.config import ModelConfig
from transformer_jax.training.step import init_state

LINES = ["abc de", "", "f ghij ab", "\N{SNOWMAN} c", "   ", "de de"]


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
  """A run folder with a tiny model of random weights."""
  folder = epath.Path(tmp_path_factory.mktemp("run"))
  config = Config(
    model=ModelConfig(vocab_size=277, num_layers=1, d_model=8, d_ff=13, num_heads=2),
    decode=DecodeConfig(beam_size=2, extra_length=3, max_source_length=16),
  )
  generator = random.Random(0)
  tokenizer = Tokenizer.learn(["".join(generator.choices("abcdefghij ", k=20)) for _ in range(30)], 277)
  run_folder.begin_run(folder, config, tokenizer, [])
  checkpoints = checkpoint.Checkpoints(folder, keep=1)
  checkpoints.save(init_state(config), 1.0)
  checkpoints.wait()
  checkpoints.close()
  return str(folder)


@pytest.fixture(scope="module")
def translator(workdir):
  return Translator.load(workdir)


@pytest.fixture(autouse=True)
def _one_translator(monkeypatch, request):
  """Restores and compiles once: only the folder is looked at again."""
  if "translator" in request.fixturenames:
    translator = request.getfixturevalue("translator")
    monkeypatch.setattr(Translator, "load", lambda workdir: translator)


@pytest.fixture
def run(monkeypatch, capfdbinary, tmp_path):
  """Runs a command on some input: (status, output, lines on stderr)."""

  def run(*argv, stdin=b""):
    (tmp_path / "stdin").write_bytes(stdin)
    with open(tmp_path / "stdin") as file:
      monkeypatch.setattr(sys, "stdin", file)
      return ended(argv)

  def ended(argv):
    status = main([str(argument) for argument in argv])
    out, err = capfdbinary.readouterr()
    return status, out.decode(), err.decode().split("\n")[:-1]

  return run


def text(lines):
  return "".join(f"{line}\n" for line in lines)


def test_line_i_is_the_translation_of_line_i(run, translator, workdir):
  status, out, _ = run("translate", "--workdir", workdir, stdin=text(LINES).encode())
  assert status == 0
  assert out == text(translator.translate(LINES))
  assert out.split("\n")[1] == out.split("\n")[4] == ""


def test_windows_line_ends_and_a_missing_last_one(run, translator, workdir):
  _, out, _ = run("translate", "--workdir", workdir, stdin="\r\n".join(LINES).encode())
  assert out == text(translator.translate(LINES))


def test_scores_and_n_best(run, translator, workdir):
  _, out, _ = run("translate", "--workdir", workdir, "--n-best", 2, "--scores", stdin=text(LINES).encode())
  lines = out.split("\n")[:-1]
  assert len(lines) == 2 * len(LINES)
  for i, best in enumerate(translator.translate(LINES, n_best=2, return_scores=True)):
    for rank, translation in enumerate(best):
      found, _, translated = lines[2 * i + rank].partition("\t")
      assert translated == translation.text
      assert float(found) == pytest.approx(translation.score, abs=1e-6)
  assert lines[2:4] == ["0.000000\t", ""]


def test_a_bad_byte_comes_after_the_lines_before_it(run, translator, workdir):
  status, out, err = run("translate", "--workdir", workdir, stdin=b"abc de\nf\n\xff\nab\n")
  assert status == 2
  assert out == text(translator.translate(["abc de", "f"]))
  assert len(err) == 1 and err[0].startswith("transformer-jax: error: standard input, line 3: ")


def test_a_long_line_is_split_or_refused_and_changes_no_other(run, translator, workdir):
  long = "abc de " * 300
  lines = ["abc", long, "de", *LINES]
  alone = text(translator.translate(lines[:1] + lines[2:])).split("\n")
  status, out, err = run("translate", "--workdir", workdir, stdin=text(lines).encode())
  assert status == 0
  assert out.split("\n")[:1] + out.split("\n")[2:] == alone
  assert [line.split(" tokens")[0] for line in err] == ["line 2 has more than config.decode.max_source_length = 16"]
  status, out, err = run("translate", "--workdir", workdir, "--long", "refuse", stdin=text(lines).encode())
  assert (status, out) == (2, f"{alone[0]}\n")
  assert len(err) == 1 and "line 2 has more than config.decode.max_source_length = 16 tokens" in err[0]


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


def test_an_input_that_cannot_be_read_is_named(workdir, translator, capfd, monkeypatch, tmp_path):
  with open(tmp_path / "file", "w") as not_readable:
    monkeypatch.setattr(sys, "stdin", not_readable)
    assert main(["translate", "--workdir", workdir]) == 2
  assert "error: cannot read standard input: Bad file descriptor; give it" in capfd.readouterr().err


def test_memory_that_is_exhausted_is_one_sentence(run, translator, workdir, monkeypatch):
  for error in (MemoryError(), RuntimeError("RESOURCE_EXHAUSTED: out of memory while allocating 9 bytes")):

    def exhausted(*args, error=error, **options):
      raise error

    monkeypatch.setattr(translator, "translate_lines", exhausted)
    status, out, err = run("translate", "--workdir", workdir, stdin=b"a\n")
    assert (status, out) == (1, "") and len(err) == 1 and "memory is exhausted" in err[0]


def test_nothing_in_nothing_out(run, translator, workdir):
  assert run("translate", "--workdir", workdir) == (0, "", [])


@pytest.fixture
def files(tmp_path):
  (tmp_path / "a.en").write_text(text(LINES))
  (tmp_path / "a.de").write_text(text(reversed(LINES)))
  return tmp_path


def test_evaluate_prints_scores(run, translator, workdir, files):
  expected = score(translator.translate(LINES), LINES[::-1], tokenize="char", lowercase=True)
  argv = ["evaluate", "--workdir", workdir, "--source", files / "a.en", "--reference", files / "a.de"]
  argv += ["--tokenize", "char", "--lowercase", "--hypotheses", files / "out"]
  status, out, _ = run(*argv, "--json")
  values = json.loads(out)
  assert status == 0
  assert values.pop("seconds") >= 0
  assert values == expected.to_dict()
  assert values["sentences"] == len(LINES)
  assert (files / "out").read_text() == text(translator.translate(LINES))
  _, out, _ = run(*argv)
  assert out.startswith(str(expected))


def test_translations_never_take_the_place_of_what_is_read(run, workdir, files):
  argv = ["evaluate", "--workdir", workdir, "--source", files / "a.en", "--reference", files / "a.de", "--hypotheses"]
  for name in ("a.de", "../" + files.name + "/a.en"):
    status, out, err = run(*argv, files / name)
    assert (status, out) == (2, "") and "is a file that is read: give another one" in err[0]
  assert (files / "a.de").read_text() == text(reversed(LINES))
  (files / "folder").mkdir()
  status, out, err = run(*argv, files / "folder")
  assert (status, out) == (2, "") and "cannot be written: give a file" in err[0]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk_costs_no_scores(run, translator, workdir, files):
  argv = ["evaluate", "--workdir", workdir, "--source", files / "a.en", "--reference", files / "a.de"]
  status, out, err = run(*argv, "--hypotheses", "/dev/full")
  assert status == 1 and out.startswith("BLEU")
  assert "cannot write /dev/full: No space left on device" in err[-1]


def test_evaluate_reports(run, translator, workdir, files):
  argv = ["evaluate", "--workdir", workdir, "--source", files / "a.en", "--reference", files / "a.de", "--report"]
  argv += ["--beam-size", 1, "--hypotheses", files / "out"]
  status, out, _ = run(*argv, "--json")
  found = json.loads(out)
  assert status == 0
  translations = translator.translate(LINES, beam_size=1)
  assert found["scores"]["bleu"]["score"] == score(translations, LINES[::-1]).bleu
  assert found["scores"]["compound_split_bleu"] is not None
  assert found["test_set"]["direction"] == "en-de"
  assert found["test_set"]["source"] == {"file": "a.en", "sha256": content_hash(LINES)}
  assert found["test_set"]["reference"] == {"file": "a.de", "sha256": content_hash(LINES[::-1])}
  assert found["translations"] == {"file": "out", "sha256": content_hash(translations)}
  assert found["run"] == {
    "seed": 0,
    "step": 0,
    "averaged_steps": None,
    "penalty": "gnmt",
    "beam_size": 1,
    "length_penalty": 0.6,
    "patience": 0.0,
  }
  assert found["seconds"] >= 0 and found["comparison"] is None
  _, out, _ = run(*argv)
  assert out.startswith("BLEU ") and "beam_size 1" in out and found["scores"]["ter"]["signature"] in out


def test_evaluate_compares(run, translator, workdir, files):
  (files / "other").write_text(text(LINES[::-1]))
  argv = ["evaluate", "--workdir", workdir, "--source", files / "a.en", "--reference", files / "a.de"]
  _, out, _ = run(*argv, "--compare", files / "other", "--json")
  comparison = json.loads(out)["comparison"]
  assert (comparison["file"], comparison["resamples"]) == ("other", 1000)
  assert comparison["scores"]["chrf"]["score"] == pytest.approx(100)


def test_score_is_the_report_without_a_run(run, translator, workdir, files):
  common = ["--reference", files / "a.de", "--hypotheses", files / "out", "--source", files / "a.en", "--json"]
  common += ["--tokenize", "char", "--lowercase"]
  _, out, _ = run("evaluate", "--workdir", workdir, *common, "--report")
  status, again, _ = run("score", "--languages", "en", "de", *common)
  assert status == 0
  assert json.loads(again) == json.loads(out) | {"run": None, "seconds": None}


def test_score_of_what_equals_the_reference(run, files):
  argv = ["score", "--hypotheses", files / "a.de", "--reference", files / "a.de", "--compare", files / "a.de"]
  status, out, _ = run(*argv)
  assert status == 0
  assert "100.0%" in out and "difference +0.00, p = 1.000" in out and "Table 2" not in out


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


def test_options_that_the_search_cannot_use(run, translator, workdir):
  status, _, err = run("translate", "--workdir", workdir, "--n-best", 3)
  assert status == 2
  assert err == ["transformer-jax: error: n_best is 3, but must be from 1 to beam_size, which is 2"]
  status, _, err = run("translate", "--workdir", workdir, "--patience", -1)
  assert status == 2
  assert err == ["transformer-jax: error: patience is -1.0, but must be 0 or more"]


def test_files_of_unequal_length(run, workdir, files):
  (files / "short").write_text("one line\n")
  evaluate = ["evaluate", "--workdir", workdir, "--source", files / "a.en", "--reference"]
  for argv in (
    [*evaluate, files / "short"],
    [*evaluate, files / "a.de", "--compare", files / "short"],
    ["score", "--hypotheses", files / "short", "--reference", files / "a.de"],
    ["score", "--hypotheses", files / "a.en", "--reference", files / "a.de", "--compare", files / "short"],
    ["score", "--hypotheses", files / "a.en", "--reference", files / "a.de", "--source", files / "short"],
  ):
    status, out, err = run(*argv)
    assert (status, out) == (2, "")
    assert len(err) == 1 and "has 6" in err[0] and "short has 1" in err[0]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk_behind_the_output_is_one_sentence(run, translator, workdir, monkeypatch):
  with open("/dev/full", "w") as full:
    monkeypatch.setattr(sys, "stdout", full)
    status, _, err = run("translate", "--workdir", workdir, stdin=text(LINES).encode())
  assert status == 1
  assert err[-1] == (
    "transformer-jax: error: cannot write standard output: No space left on device; "
    "what was saved before is untouched: make room, and give the same command again"
  )


def test_ctrl_c_is_quiet(run, translator, workdir, monkeypatch):
  def interrupted(*args, **options):
    raise KeyboardInterrupt

  monkeypatch.setattr(translator, "translate_lines", interrupted)
  assert run("translate", "--workdir", workdir) == (130, "", [])


def test_help_does_not_wait_for_jax():
  program = "import sys; from transformer_jax.__main__ import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
  program += "sys.exit(bool({'jax', 'numpy', 'sacrebleu', 'sacremoses'} & sys.modules.keys()))"
  result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
  assert result.returncode == 0, result.stderr
  assert "translate" in result.stdout and "evaluate" in result.stdout and "score" in result.stdout


@pytest.fixture
def process(workdir):
  """`translate` in a process of its own, whose locale does not know UTF-8, and whose pipes hold one page."""
  process = subprocess.Popen(
    [sys.executable, "-m", "transformer_jax", "translate", "--workdir", workdir, "--beam-size", "1"],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    env={"LC_ALL": "C", "PYTHONUTF8": "0", "JAX_PLATFORMS": "cpu", "PYTHONPATH": ":".join(sys.path)},
  )
  for pipe in (process.stdin, process.stdout):
    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)
  watchdog = threading.Timer(120, process.kill)
  watchdog.start()
  yield process
  watchdog.cancel()
  process.kill()
  process.communicate()


def test_a_reader_that_leaves_is_no_error(process):
  """As in `| head -1`."""
  process.stdout.close()
  process.stdout = None
  _, err = process.communicate("abc \N{SNOWMAN}\n".encode())
  assert process.returncode == 141
  assert all(line.endswith(" a second") for line in err.decode().splitlines())  # progress, where the machine is busy


def test_a_program_at_both_ends_is_never_left_waiting(process):
  """It waits for the answer to each line, then writes several pages before it reads any, then a byte that is wrong."""
  lines = ["abc", "", "de de", "f ghij \N{SNOWMAN}", "a" * 50]
  answers = []
  for line in lines:
    process.stdin.write(f"{line}\n".encode())
    process.stdin.flush()
    answers.append(process.stdout.readline())
  assert len(set(answers)) > 2 and answers[1] == b"\n"
  process.stdin.write(text(300 * lines).encode() + b"abc\n\xff\nabc\n")
  process.stdin.flush()
  assert len(b"".join(300 * answers)) > 2 * 4096
  out, err = process.communicate()
  assert out == b"".join([*300 * answers, answers[0]])
  assert process.returncode == 2
  error = f"transformer-jax: error: standard input, line {301 * len(lines) + 2}: "
  assert err.decode().splitlines()[-1].startswith(error)
