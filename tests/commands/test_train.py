"""The flags of `train`: what they set, and one line for each mistake. Nothing is trained here."""

import argparse
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from transformer_jax import runs
from transformer_jax.__main__ import main
from transformer_jax.analysis import plan
from transformer_jax.commands import experiment, train
from transformer_jax.config import Config, Corpus, DataConfig, serialization
from transformer_jax.inside import report
from transformer_jax.language.config import BERTConfig
from transformer_jax.model.config import Dtype
from transformer_jax.runs import digests, resume, run_folder
from transformer_jax.runtime import compilation_cache, devices, files, hosts
from transformer_jax.runtime.errors import InputError, RunError

ROOT = Path(__file__).parents[2]
SHIM = str(ROOT / "train.py")


@pytest.fixture
def run(monkeypatch, capfd, tmp_path):
  """Calls `train`: (status, what would be trained, output, lines on stderr)."""

  def run(*argv):
    started = []
    loop = SimpleNamespace(train=lambda config, workdir, accept_edits: started.append((config, str(workdir))))
    monkeypatch.setitem(sys.modules, "transformer_jax.trainer.loop", loop)
    monkeypatch.setattr(train, "_report", lambda folder: None)
    monkeypatch.chdir(tmp_path)
    status = main(["train", *argv])
    out, err = capfd.readouterr()
    return status, started, out, err.splitlines()

  return run


def test_without_flags_it_trains_the_default(run, tmp_path):
  status, [(config, workdir)], _, said = run()
  assert (status, config.data.corpus) == (0, Corpus.NUMBERS)
  assert said == ["no --config is given; the first example is taken:", f"  {ROOT}/configs/numbers.py"]
  assert workdir == str(tmp_path / "runs" / "numbers")


def test_a_folder_without_a_run_is_not_resumed(run, tmp_path):
  """Who mistyped the folder of a run is told so; the first example begins there only with --config or a key."""
  status, started, _, [error] = run("--workdir=mistyped")
  assert (status, started) == (2, []) and not (tmp_path / "mistyped").exists()
  assert error.startswith("transformer-jax: error: mistyped holds no run that could go on: check --workdir, or begin")
  for more in ("--config=numbers", "--config.train.seed=3"):
    status, [(config, folder)], _, _ = run("--workdir=new", more)
    assert (status, config.data.corpus, folder) == (0, Corpus.NUMBERS, str(tmp_path / "new"))


def test_help_shows_the_keys_of_the_run(run, tmp_path):
  with tarfile.open(ROOT / "tests" / "runs" / "older" / "run.tar.xz") as archive:
    archive.extractall(tmp_path / "run", filter="data")
  kept = json.loads((tmp_path / "run" / "config.json").read_text())["model"]["d_model"]
  assert run("--help")[2] != run("--workdir=run", "--help")[2]
  _, _, out, _ = run("--workdir=run", "--config.model.d_ff=77", "--help")
  assert "keys, with the values that the run in run and the flags give them:" in out
  assert f"config.model.d_model={kept}" in out and "config.model.d_ff=77" in out
  assert "the values that configs/numbers.py" in run("--workdir=new", "--help")[2]


def test_help_writes_no_control_characters_of_a_run(run, tmp_path):
  with tarfile.open(ROOT / "tests" / "runs" / "older" / "run.tar.xz") as archive:
    archive.extractall(tmp_path / "run", filter="data")
  file = tmp_path / "run" / "config.json"
  values = json.loads(file.read_text())
  values["data"]["cache_dir"] = "a\x1b]0;b\x07\n  --config.x=c"
  file.write_text(json.dumps(values))
  out = run("--workdir=run", "--help")[2]
  assert "  --config.data.cache_dir='a ]0;b   --config.x=c'\n" in out and "\x1b" not in out and "\x07" not in out


def test_a_config_file_and_overrides(run, tmp_path):
  file = ROOT / "configs" / "multi30k.py"
  status, [(config, workdir)], _, errors = run(
    f"--config={file}",
    "--workdir=here",
    "--config.data.train=PREFIX",
    "--config.model.num_layers=3",
    "--config.model.d_k=5",
    "--config.model.dtype=bfloat16",
    "--config.train.label_smoothing=0.2",
    "--config.train.peak_learning_rate=0.001",
    "--config.model.pre_norm",
  )
  assert (status, errors, workdir) == (0, [], str(tmp_path / "here"))
  assert (config.data.train, config.model.num_layers, config.model.d_k) == ("PREFIX", 3, 5)
  assert (config.model.dtype, config.model.pre_norm) == (Dtype.BFLOAT16, True)
  assert (config.train.label_smoothing, config.train.peak_learning_rate) == (0.2, 0.001)


@pytest.fixture
def end(monkeypatch, capfd, tmp_path):
  """Calls `train` with a loop that leaves a run folder, or does what is given: (status, lines on stderr)."""

  def leave(config, workdir, accept_edits):
    with tarfile.open(ROOT / "tests" / "runs" / "older" / "run.tar.xz") as archive:
      archive.extractall(workdir, filter="data")

  def end(loop=leave):
    monkeypatch.setitem(sys.modules, "transformer_jax.trainer.loop", SimpleNamespace(train=loop))
    monkeypatch.chdir(tmp_path)
    status = main(["train", "--config=numbers", "--workdir=here"])
    return status, capfd.readouterr().err.splitlines()[2:]

  return end


def test_a_finished_run_has_a_report(end, tmp_path):
  assert end() == (0, ["a report of the run is in", "  here/report.html"])
  page = (tmp_path / "here" / "report.html").read_text()
  assert "pieces, learned from the training text</td>" in page


def test_a_report_that_fails_is_one_line_and_no_failure(end, monkeypatch):
  def fail(*_):
    raise ValueError("no page\nat all")

  monkeypatch.setattr(report, "write", fail)
  assert end() == (0, ["the report of the run could not be written: no page"])


def test_a_run_that_fails_or_is_stopped_has_no_report(end, tmp_path):
  def fail(config, workdir, accept_edits):
    raise RunError("the disk is full")

  assert end(fail)[0] == 1
  assert not (tmp_path / "here" / "report.html").exists()


def test_a_run_folder_may_be_in_the_cloud(run, monkeypatch):
  monkeypatch.setattr(run_folder, "require_reachable", lambda path: None)
  monkeypatch.setattr(resume, "config_of_run", lambda *_, **__: None)
  _, [(_, workdir)], _, _ = run("--workdir=gs://bucket/runs/x", "--config=numbers")
  assert workdir == "gs://bucket/runs/x"


def test_an_argument_of_a_config_file_is_part_of_the_run_folder(run, tmp_path):
  file = tmp_path / "mine.py"
  file.write_text(
    "from transformer_jax.config import Config, TrainConfig\n"
    "def get_config(steps): return Config(train=TrainConfig(steps=len(steps)))\n"
  )
  status, [(config, workdir)], _, _ = run(f"--config={file}:rows/17: B")
  assert (status, config.train.steps, workdir) == (0, 10, str(tmp_path / "runs" / "mine-rows-17-B"))


@pytest.mark.parametrize(
  ("argv", "words"),
  [
    (["--config.model.layers=2"], ["config.model.layers", "num_layers"]),
    (["--config.modle.num_layers=2"], ["config.modle", "model"]),
    (["--config.model.num_layers=two"], ["config.model.num_layers", "two"]),
    (["--config.model.num_layers=2.5"], ["config.model.num_layers", "2.5"]),
    (["--config.model.num_layers="], ["config.model.num_layers"]),
    (["--config.model.num_layers"], ["config.model.num_layers"]),
    (["--config.model.dropout=much"], ["config.model.dropout", "much"]),
    (["--config.model.pre_norm=maybe"], ["config.model.pre_norm", "maybe"]),
    (["--config.model.dtype=float16"], ["config.model.dtype", "float16"]),
    (["--config.data.corpus=moon"], ["config.data.corpus", "moon"]),
    (["--config.model.num_heads=3"], ["config.model.num_heads", "config.model.d_model"]),
    (["--config.data.max_length=999"], ["config.data.max_length", "config.data.row_length"]),
    (["--config.train.steps=0"], ["config.train.steps", "positive"]),
    (["--config.train.batch_tokens=5"], ["config.train.batch_tokens", "config.data.row_length"]),
    (["--config.model=3"], ["config.model", "group"]),
    (["--config=configs/nope.py"], ["configs/nope.py"]),
    (["--config=mine/multi30k.py"], ["there is no file mine/multi30k.py"]),
    (["--config=multi30k.json"], ["there is no file multi30k.json"]),
    (["--config=."], ["--config"]),
    (["--workdri=x"], ["--workdri is not a flag", "did you mean --workdir?"]),
    (["--config.modle.num_layers=2"], ["did you mean model.num_layers"]),
    (["--config.steps=2"], ["config.steps", "did you mean train.steps?"]),
    (["--config=multi3k"], ["no file multi3k", "did you mean multi30k?", "table3"]),
    (["--config=multi30k:rdrop"], ["'rdrop' is not a recipe", "r-drop and plain"]),
    (["--workdir"], ["workdir"]),
    (["configs/base.py"], ["configs/base.py", "not a flag"]),
    (["--config.train.steps", "5", "6"], ["'6'", "not a flag"]),
    (["--hosts=2"], ["add --coordinator and --host"]),
    (["--coordinator=localhost:1"], ["add --hosts and --host"]),
    (["--hosts=two"], ["hosts", "two"]),
    (["--hosts=0"], ["--hosts is 0", "positive"]),
    (["--coordinator=a:1", "--hosts=2", "--host=2"], ["--host is 2", "from 0 to 1"]),
    (["--coordinator=a:1", "--hosts=2", "--host=-1"], ["--host is -1", "from 0 to 1"]),
    (["--coordinator=a", "--hosts=2", "--host=1"], ["--coordinator is 'a'", "HOST:PORT"]),
    (["--coordinator=a:70000", "--hosts=2", "--host=1"], ["--coordinator is 'a:70000'", "HOST:PORT"]),
    (["--coordinator=a:" + "1" * 5000, "--hosts=2", "--host=1"], ["--coordinator is 'a:111", "HOST:PORT"]),
  ],
  ids=lambda value: " ".join(value),
)
def test_a_mistake_is_one_line(run, argv, words):
  assert_one_line(run(*argv), words)


@pytest.fixture
def bert(tmp_path):
  """The folder of a run of BERT, with its config alone."""
  model = BERTConfig(vocab_size=311, num_layers=3, d_model=10, d_ff=17, num_heads=5, max_positions=64)
  (tmp_path / "bert").mkdir()
  (tmp_path / "bert" / "config.json").write_text(
    serialization.to_json(Config(data=DataConfig(row_length=32), model=model))
  )
  return tmp_path / "bert"


def test_a_plan_has_the_sizes_that_are_given_beside_the_other_run(bert):
  keys = [f"--config.train.init_from={bert}", "--config.model.d_ff=23"]
  args = argparse.Namespace(config="bert:classify", overrides=keys, accept_edits=False)
  found = experiment.config_of_new_run(args).model
  assert (found.d_model, found.d_ff) == (10, 23)


def test_training_accepts_edits_of_the_other_run(run, bert):
  (bert / digests.FILE).write_text(f"{'0' * 64}  config.json\n")
  argv = ["--config=bert:classify", "--workdir=here", f"--config.train.init_from={bert}"]
  status, started, _, said = run(*argv)
  assert (status, started) == (2, []) and "give --accept-edits" in said[-1]
  assert run(*argv, "--accept-edits")[0] == 0


def test_the_folder_of_a_run_is_no_config_file(run, bert):
  for given in (bert, bert / "config.json"):
    assert_one_line(run(f"--config={given}"), [f"--config={given}: it is a run's, and --workdir alone resumes a run"])


def test_a_run_takes_the_sizes_of_the_one_that_it_begins_with(run, bert):
  argv = ["--config=bert:classify", "--workdir=here", f"--config.train.init_from={bert}", "--config.model.d_ff=23"]
  status, [(config, _)], _, said = run(*argv)
  sizes = {"vocab_size": 311, "num_layers": 3, "d_model": 10, "d_ff": 23, "num_heads": 5, "max_positions": 64}
  assert (status, {key: vars(config.model)[key] for key in sizes}) == (0, sizes)
  assert any(line.startswith(f"as the run in {bert}: config.model.vocab_size=311 ") for line in said)


def test_a_run_without_a_checkpoint_keeps_the_sizes_that_were_given(run, bert, tmp_path):
  """The command line of the second start has only the folder."""
  argv = ["--config=bert:classify", "--workdir=here", f"--config.train.init_from={bert}", "--config.model.d_ff=23"]
  _, [(config, _)], _, _ = run(*argv)
  (tmp_path / "here").mkdir()
  (tmp_path / "here" / "config.json").write_text(serialization.to_json(config))
  status, [(again, _)], _, said = run("--workdir=here")
  assert (status, again) == (0, config) and not any("as the run in" in line for line in said)


def test_plan_accepts_edits_of_the_other_run(bert, capfd):
  (bert / digests.FILE).write_text(f"{'0' * 64}  config.json\n")
  argv = ["plan", "--config=bert:classify", f"--config.train.init_from={bert}", "--no-data"]
  assert main(argv) == 2
  assert "give --accept-edits" in capfd.readouterr().err
  assert main([*argv, "--accept-edits"]) == 0


@pytest.mark.long
def test_plan_counts_with_the_sizes_of_the_other_run(bert, capfd):
  argv = ["plan", "--config=bert:classify", f"--config.train.init_from={bert}", "--no-data", "--json"]
  assert main(argv) == 0
  found = json.loads(capfd.readouterr().out)
  model = vars(runs.open(bert).config.model)
  sizes = {key: value for key, value in model.items() if key not in ("dropout", "attention_dropout", "dtype")}
  given = [f"--config.model.{key}={getattr(value, 'value', value)}" for key, value in sizes.items()]
  assert main([*argv[:2], *given, *argv[3:]]) == 0
  assert json.loads(capfd.readouterr().out) == found


IMPORT = "from transformer_jax.config import Config\nfrom transformer_jax.model.config import ModelConfig\n"


@pytest.mark.parametrize(
  ("text", "words"),
  [
    ("def get_config(:\n", ["mine.py, line 1", "SyntaxError"]),
    ("import nonesuch\n", ["nonesuch"]),
    ("FIRST = next(iter(()))\n", ["the file fails in line 1 with StopIteration"]),
    ("x = 1\n", ["get_config"]),
    ("def get_config(): return 1 / 0\n", ["the file fails in line 1 with ZeroDivisionError: division by zero"]),
    (f"{IMPORT}def get_config():\n  return Config(train=3)\n", ["the file fails in line 4 with AttributeError"]),
    ("import sys\nsys.exit(0)\n", ["the file fails in line 2 with SystemExit: 0"]),
    ("def get_config(): return {'model': 1}\n", ["mine.py", "Config of transformer_jax.config"]),
    (
      f"{IMPORT}def get_config(): return Config(model=ModelConfig(num_heads=3))\n",
      ["mine.py", "config.model.num_heads"],
    ),
    (f"{IMPORT}def get_config(): return Config(modle=1)\n", ["mine.py", "modle"]),
    (
      f"{IMPORT}def get_config():\n  config = Config()\n  config.train.stpes = 7\n  return config\n",
      ["mine.py", "config.train.stpes is not a key (did you mean steps?)"],
    ),
  ],
  ids=[
    *("syntax", "import", "stops", "no-get_config", "raises", "wrong-type", "exits", "no-Config", "impossible"),
    *("unknown-key", "unknown-key-set-later"),
  ],
)
def test_a_mistake_in_a_config_file_is_one_line(run, tmp_path, text, words):
  (tmp_path / "mine.py").write_text(text)
  assert_one_line(run("--config=mine.py"), ["--config", *words])


@pytest.mark.parametrize("key", ["--config.model.memory_scale=0.7", "--config.train.steps=many"])
def test_a_mistake_in_a_config_file_comes_before_a_key(run, tmp_path, key):
  """The key may be of a family that the file cannot import."""
  (tmp_path / "mine.py").write_text("from my_model import MyConfig\n")
  assert_one_line(run("--config=mine.py", key), ["the file fails in line 1 with ModuleNotFoundError", "my_model"])
  assert_one_line(run("--config=yours.py", key), ["there is no file yours.py"])


def assert_one_line(result, words):
  status, started, out, errors = result
  assert (status, started, out) == (2, [], "")
  assert len(errors) == 1 and errors[0].startswith("transformer-jax: error: ")
  assert "Traceback" not in errors[0] and len(errors[0]) < 600
  for word in words:
    assert word in errors[0]


def test_the_program_ends_with_that_line_and_status_2(tmp_path):
  program = [sys.executable, SHIM, "--config.model.layers=2"]
  done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True)
  assert (done.returncode, done.stdout) == (2, "")
  [error] = done.stderr.splitlines()
  assert error.startswith("transformer-jax: error: config.model.layers is not a key")


# As in some containers: no HOME, and a number of a user that no list has.
HOMELESS = """
import pwd, sys
from transformer_jax.__main__ import main
from transformer_jax.runtime.files import user_cache
def nobody(number):
  raise KeyError("getpwuid(): uid not found")
pwd.getpwuid = nobody
print(main(["train", *sys.argv[1:]]), user_cache())
"""


def ended(program, cwd, *, without=(), **environment):
  """A program at its end; what it says on a slow machine only, as `loading JAX ...`, is left out."""
  own = {name: value for name, value in os.environ.items() if name not in without}
  done = subprocess.run(program, cwd=cwd, capture_output=True, text=True, env=own | environment)
  lines = done.stderr.splitlines(keepends=True)
  done.stderr = "".join(line for line in lines if not line.endswith(" ...\n"))
  return done


@pytest.mark.long
def test_without_a_home_the_cache_is_beside_the_run_and_it_is_said(tmp_path):
  argv = [f"--workdir={tmp_path}/runs/a[1]"]  # which ends before anything is computed
  without = ("HOME", "XDG_CACHE_HOME", "TRANSFORMER_JAX_CACHE")
  done = ended([sys.executable, "-c", HOMELESS, *argv], tmp_path, without=without, PYTHONPATH=str(ROOT))
  cache = tmp_path / "runs" / "transformer_jax_cache"
  assert done.stdout == f"2 {cache}\n" and not cache.exists()  # no program in it, which could be a stranger's
  said, error = done.stderr.splitlines()
  assert said.startswith("there is no home folder") and f"rows are kept in {cache}, " in said
  assert "square brackets" in error


def test_without_a_home_the_cache_folder_is_to_be_named(monkeypatch):
  for name in ("XDG_CACHE_HOME", "TRANSFORMER_JAX_CACHE"):
    monkeypatch.delenv(name, raising=False)
  monkeypatch.setattr(Path, "home", lambda: Path("~no-such-user").expanduser())
  with pytest.raises(InputError, match=r"no home folder.*set TRANSFORMER_JAX_CACHE"):
    files.user_cache()


@pytest.mark.parametrize(
  ("name", "below"), [("TRANSFORMER_JAX_CACHE", "cache"), ("XDG_CACHE_HOME", "cache/transformer_jax")]
)
def test_a_cache_that_no_shell_has_read_is_in_the_home_folder(tmp_path, monkeypatch, name, below):
  monkeypatch.delenv("TRANSFORMER_JAX_CACHE", raising=False)
  monkeypatch.setenv("HOME", str(tmp_path))
  monkeypatch.setenv(name, "~/cache")
  assert files.user_cache() == tmp_path / below


@pytest.mark.long
def test_a_run_folder_whose_name_is_no_text_is_refused(tmp_path):
  done = ended([sys.executable, SHIM, b"--workdir=a\xffb"], tmp_path)
  assert (done.returncode, done.stdout) == (2, "") and not (tmp_path / "a\udcffb").exists()
  [error] = done.stderr.splitlines()
  assert error.startswith("transformer-jax: error: the run folder '")
  assert "a\\udcffb' has a name that is not UTF-8" in error


def test_devices_that_cannot_be_used_though_none_is_named(monkeypatch):
  """As with a plugin whose driver is too old."""

  def fails():
    raise RuntimeError("Unable to initialize backend 'cuda'")

  monkeypatch.setattr(devices.jax, "local_devices", fails)
  for named, advice in (("", "JAX_PLATFORMS=cpu computes without them"), ("cuda", "unset it, and JAX takes")):
    monkeypatch.setenv("JAX_PLATFORMS", named)
    with pytest.raises(InputError, match=f"Unable to initialize backend 'cuda'; {advice}"):
      devices.require_devices()


@pytest.mark.long
@pytest.mark.parametrize(
  "program",
  [
    [SHIM],
    ["-m", "transformer_jax", "translate", "--workdir=."],
    ["-m", "transformer_jax", "plan", "--config=base"],
    ["-m", "transformer_jax", "draw", "positions", "--output=p.svg"],
  ],
)
def test_devices_that_are_not_there(tmp_path, program):
  done = ended([sys.executable, *program], tmp_path, JAX_PLATFORMS="nonsense", PYTHONPATH=str(ROOT))
  assert (done.returncode, done.stdout) == (2, "")
  error = done.stderr.splitlines()[-1]
  assert "error: JAX finds no device of JAX_PLATFORMS=nonsense" in error and "unset it" in error


def test_help_has_each_key_with_its_value_meaning_type_and_default(run):
  status, started, out, errors = run("--config=multi30k", "--config.train.seed=7", "--help")
  assert (status, started, errors) == (0, [], [])
  words = " ".join(out.split())
  for text in (
    "usage: transformer-jax train",
    "--workdir DIR the run folder",
    "config.model: The Transformer's sizes and options",
    "--config.model.num_layers=4 N, the layers of the encoder, and as many of the decoder. [int; default 6]",
    "--config.model.d_k=none width of a head's queries and keys; None is d_model / h. [int or none; default none]",
    "--config.evaluate.lowercase=true whether BLEU and chrF2 ignore case. [bool; default false]",
    "--config.decode.penalty=fairseq",
    "[one of gnmt, fairseq; default gnmt]",
    "--config.data.test=''",
    "--config.train.seed=7",
    "--config.debug=false",
  ):
    assert text in words, text
  assert max(map(len, out.splitlines())) <= 80


def test_flags_of_another_familys_help(run):
  _, _, out, _ = run("--help", "--config=rnn:luong-dot")
  assert "--config.model.score=dot\n" in out and "--config.model.hidden_size=200\n" in out and "d_ff" not in out


def test_the_shim_and_the_command_are_one(tmp_path):
  def said(*program):
    done = ended([sys.executable, *program, "--config.train.steps=0"], tmp_path, PYTHONPATH=str(ROOT))
    return done.returncode, done.stdout, done.stderr

  assert said(SHIM) == said("-m", "transformer_jax", "train")


def test_a_file_of_here_goes_before_one_of_the_package(run, tmp_path):
  _, [(shipped, _)], _, said = run("--config=configs/multi30k.py")
  assert shipped.model.num_layers == 4 and said[-1] == f"  {ROOT}/configs/multi30k.py"
  (tmp_path / "configs").mkdir()
  (tmp_path / "configs" / "multi30k.py").write_text(
    "from configs import base, tiny\ndef get_config(): return tiny.config(base.get_config())\n"
  )
  (tmp_path / "configs" / "tiny.py").write_text(
    "import dataclasses\ndef config(of): return dataclasses.replace(of, debug=True)\n"
  )
  _, [(own, workdir)], _, said = run("--config=configs/multi30k.py")
  assert own.debug and own.model.num_layers == 6 and said == []
  assert workdir == str(tmp_path / "runs" / "multi30k")
  _, [(own, _)], _, said = run("--config=multi30k")  # a name alone is that of the package
  assert not own.debug and len(said) == 2


def test_a_run_folder_is_enough_to_go_on(run, workdir):
  begun_with = runs.open(workdir).config
  status, [(config, folder)], _, said = run(f"--workdir={workdir}")
  assert (status, config, folder, said) == (0, begun_with, workdir, [])
  _, [(config, _)], _, _ = run(f"--workdir={workdir}", "--config.train.steps=7", "--config.model.d_ff=5")
  assert config == serialization.changed(begun_with, {"train.steps": 7, "model.d_ff": 5})
  status, started, _, [error] = run(f"--workdir={workdir}", "--config.model.hidden_size=3")
  assert (status, started) == (2, []) and "config.model.hidden_size is not a key" in error


def test_a_mistake_does_not_wait_for_jax(tmp_path):
  mistakes = """
    trian;train --workdri=x
    train --config.model.layers=2;train --config=nope;train --config.train.steps=0;train --hosts=2
    train --workdir=x --config.train.steps=two;train --config=table3:A-h5;plan --config=nope;translate
  """.strip().replace("\n", ";")
  program = (
    "import sys; from transformer_jax.__main__ import main\n"
    f"assert all(main(mistake.split()) == 2 for mistake in {mistakes!r}.split(';'))\n"
    "sys.exit(bool({'jax', 'numpy', 'orbax', 'flax'} & sys.modules.keys()))"
  )
  done = ended([sys.executable, "-c", program], tmp_path, PYTHONPATH=str(ROOT))
  assert done.returncode == 0, done.stderr
  assert done.stderr.count("\n") == 10


def test_a_config_that_is_a_pipe_is_refused_as_one(run, tmp_path):
  os.mkfifo(tmp_path / "c.py")
  status, started, _, [*_, last] = run("--config=c.py", "--workdir=W")
  assert (status, started) == (2, []) and "c.py is no file but a pipe or a device: write the config to a file" in last


@pytest.mark.parametrize(
  ("flags", "expected"),
  [
    ([], (None, None, None)),
    (["--hosts=1"], (None, 1, None)),
    (["--coordinator=a:1", "--hosts=2", "--host=0"], ("a:1", 2, 0)),
  ],
)
def test_hosts_are_joined_by_the_flags(run, monkeypatch, flags, expected):
  joined = []
  monkeypatch.setattr(hosts, "join", lambda *given: joined.append(given))
  status, started, _, _ = run("--config=numbers", *flags)
  assert (status, len(started), joined) == (0, 1, [expected])


def test_what_training_compiles_is_kept(run, monkeypatch):
  kept = []
  monkeypatch.setattr(compilation_cache, "use_compilation_cache", lambda: kept.append(True))
  assert run("--config=numbers")[0] == 0 and kept == [True]


@pytest.mark.parametrize("flags", [[], ["--accept-edits"]])
def test_plan_reads_the_text_as_the_flag_says(bert, monkeypatch, flags):
  given = []

  def data(config, *, accept_edits=False):
    given.append(accept_edits)
    return {"not_measured": "as it happens"}

  monkeypatch.setattr(plan, "data", data)
  assert main(["plan", "--config=bert:classify", f"--config.train.init_from={bert}", *flags]) == 0
  assert given == [bool(flags)]
