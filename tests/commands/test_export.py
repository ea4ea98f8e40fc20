"""`export`: what it writes for each format, and how it ends."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import safetensors
import safetensors.numpy
from etils import epath

from tests import damage
from tests.model.example import random_params
from tests.parity.exported import VOCAB, tokenizer
from tests.recurrent.example import CONFIGS
from transformer_jax import registry, runs
from transformer_jax.__main__ import main
from transformer_jax.config import Config, Corpus, DataConfig
from transformer_jax.decoding.translator import Translator
from transformer_jax.interchange.export import export
from transformer_jax.model.config import Dtype
from transformer_jax.model.params import by_name
from transformer_jax.runs import params_file, run_folder
from transformer_jax.runtime.errors import InputError, RunError
from transformer_jax.tasks.translation import TASK
from transformer_jax.trainer import loop


@pytest.fixture(scope="module")
def model(workdir):
  return runs.open(workdir).model()


@pytest.fixture(scope="module")
def original(workdir, tmp_path_factory):
  """The run as `safetensors`."""
  output = tmp_path_factory.mktemp("exported") / "model"
  assert export(workdir, output, "safetensors") == 0
  return output


@pytest.fixture
def exported(original, tmp_path):
  """A copy to damage."""
  return shutil.copytree(original, tmp_path / "model")


@pytest.mark.parametrize("command", ["export", "import"])
def test_sigterm_leaves_no_half_written_folder(workdir, tmp_path, monkeypatch, command):
  """Its name is random, so no later command would delete it."""

  def terminated(*_, **__):
    assert [*tmp_path.glob(".out.*")] and signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    os.kill(os.getpid(), signal.SIGTERM)

  flags = ["--to", "safetensors", "--workdir", str(workdir), "--output"]
  if command == "import":
    export(workdir, tmp_path / "hf", "marian-hf")
    flags = ["--from", "marian-hf", str(tmp_path / "hf"), "--workdir"]
  monkeypatch.setattr(run_folder, "begin_run", terminated)
  with pytest.raises(SystemExit) as ended:
    main([command, *flags, str(tmp_path / "out")])
  assert ended.value.code == 143 and not [*tmp_path.glob("*out*"), *tmp_path.glob(".out*")]


def assert_same_bits(found, expected):
  assert found.keys() == expected.keys()
  for name, array in found.items():
    assert array.dtype == expected[name].dtype
    np.testing.assert_array_equal(array, expected[name], name)


def test_safetensors_load_as_they_were(workdir, model, original):
  translator = Translator.load(original)
  assert_same_bits(by_name(jax.device_get(translator.params)), by_name(jax.device_get(model.params)))
  assert (translator.config, translator.step) == (model.config, model.step)
  assert runs.open(original).tokenizer.to_bytes() == model.tokenizer.to_bytes()
  assert {path.name for path in original.iterdir()} == {
    *("config.json", "tokenizer.model", "provenance.json", "SHA256SUMS", "model.safetensors")
  }
  exported = {"run": Path(workdir).name, "step": model.step, "dtype": "float32"}
  assert runs.open(original).provenance[-1]["exported"] == exported
  assert runs.open(original).checkpoints == (((model.step,), model.step, None))
  assert (original / "model.safetensors").stat().st_mode == (original / "config.json").stat().st_mode


def test_other_programs_read_the_arrays_by_our_names(model, original):
  found = safetensors.numpy.load_file(original / "model.safetensors")
  assert_same_bits(found, by_name(jax.device_get(model.params)))
  assert found["encoder/layers_0/attention/query/kernel"].shape == (8, 2, 4)


def test_bfloat16_is_the_nearest(run, workdir, model, tmp_path):
  options = ["--to", "safetensors", "--dtype", "bfloat16", "--output", tmp_path / "model"]
  status, out, err = run("export", "--workdir", workdir, *options)
  assert (status, err) == (0, [])
  assert out == f"{tmp_path / 'model'} holds the model of step 0 in the format safetensors\n"

  def rounded(x):  # to the nearest, of two alike to the even one
    bits = np.asarray(x).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).view(np.float32)

  found = by_name(jax.device_get(runs.open(tmp_path / "model").model().params))
  assert_same_bits(found, {name: rounded(array) for name, array in by_name(jax.device_get(model.params)).items()})


@pytest.mark.long
def test_safetensors_need_no_orbax_and_translating_needs_no_optax(original):
  program = (
    "import sys; sys.modules |= dict.fromkeys(['orbax', 'orbax.checkpoint', 'optax'])\n"
    "from transformer_jax import Translator; print(Translator.load(sys.argv[1]).step)"
  )
  done = subprocess.run([sys.executable, "-c", program, original], capture_output=True, text=True, check=False)
  assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


def test_an_empty_folder_may_be_a_link_but_no_mounted_disk(workdir, original, tmp_path, monkeypatch):
  (tmp_path / "folder").mkdir()
  (tmp_path / "link").symlink_to(tmp_path / "folder")
  export(workdir, tmp_path / "link", "safetensors")
  assert (tmp_path / "link").is_symlink()
  assert {path.name for path in (tmp_path / "folder").iterdir()} == {path.name for path in original.iterdir()}
  (tmp_path / "disk").mkdir()
  monkeypatch.setattr(os.path, "ismount", lambda path: path == str(tmp_path / "disk"))
  with pytest.raises(InputError, match="disk is where a disk is mounted: choose a new folder in it as --output"):
    export(workdir, tmp_path / "disk", "safetensors")


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"--to": "onnx"}, "argument --to: invalid choice: 'onnx'"),
    ({"--dtype": "float16"}, "argument --dtype: invalid choice: 'float16'"),
    ({"--quantization": "int8"}, "--quantization is not an option of the format safetensors: leave it out"),
    ({"--to": "marian-hf", "--dtype": "bfloat16"}, "--dtype is not an option of the format marian-hf: leave it out"),
    ({"--step": "4"}, "RUN has no checkpoint of step 4: it has those of steps 0"),
    ({"--output": "RUN"}, "RUN holds files already: choose another --output"),
    ({"--output": "RUN/config.json"}, "RUN/config.json is a file: choose another --output"),
    ({"--output": "RUN/config.json/model"}, "RUN/config.json/model cannot be written: "),
    ({"--output": "gs://bucket/model"}, "gs://bucket/model is not on this machine"),
    ({"--output": "RUN/a[1]"}, "has [1] in its path"),
    ({"--workdir": "EXPORTED", "--step": "3"}, "has no parameters but those of step 0: leave --step=3 out"),
    (
      {"--workdir": "EXPORTED", "--step": "best"},
      "has no parameters but those of step 0: leave --step=best out",
    ),
  ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(run, workdir, original, tmp_path, changes, message):
  def named(text):
    return text.replace("RUN", workdir).replace("EXPORTED", str(original))

  options = {"--workdir": "RUN", "--to": "safetensors", "--output": str(tmp_path / "model"), **changes}
  status, out, err = run("export", *[named(word) for option in options.items() for word in option])
  assert (status, out, len(err)) == (2, "", 1)
  assert err[0].startswith("transformer-jax: error: ") and named(message) in err[0]
  assert [path.name for path in tmp_path.iterdir()] == ["stdin"]


@pytest.mark.parametrize("to", ["ctranslate2", "marian-hf"])
@pytest.mark.parametrize("name", ["plain", "bahdanau", "luong-dot"])
def test_a_recurrent_model_is_refused(run, tmp_path, to, name):
  config = Config(model=dataclasses.replace(CONFIGS[name], vocab_size=VOCAB, source_vocab_size=None))
  params_file.write(tmp_path, random_params(config, TASK), 5, Dtype.FLOAT32)
  run_folder.begin_run(epath.Path(tmp_path), config, tokenizer(), [])
  before = {path.name for path in tmp_path.iterdir()}
  status, out, err = run("export", "--workdir", tmp_path, "--to", to, "--output", tmp_path / "model")
  family = registry.name_of(config.model)
  expected = f"the format {to} has no {family} model: choose --to safetensors, which takes every model"
  assert (status, out, err) == (2, "", [f"transformer-jax: error: {expected}"])
  assert {path.name for path in tmp_path.iterdir()} == before | {"stdin"}


def test_a_full_disk_leaves_nothing(run, workdir, tmp_path, monkeypatch):
  def full(arrays, path, metadata):
    path.write_bytes(b"half of it")
    raise safetensors.SafetensorError("I/O error: No space left on device (os error 28)")

  monkeypatch.setattr(safetensors.numpy, "save_file", full)
  status, out, err = run("export", "--workdir", workdir, "--to", "safetensors", "--output", tmp_path / "model")
  assert (status, out, len(err)) == (1, "", 1)
  assert "cannot write" in err[0] and "No space left on device" in err[0]
  assert [path.name for path in tmp_path.iterdir()] == ["stdin"]


def test_an_empty_folder_is_filled(workdir, tmp_path):
  export(workdir, tmp_path, "safetensors")
  assert (tmp_path / "model.safetensors").exists()


def test_it_is_not_trained_on_whether_its_text_is_there_or_not(exported):
  config = Config(data=DataConfig(corpus=Corpus.TEXT, train="/nowhere/text"))  # an import's text is yet to be named
  with pytest.raises(InputError, match="holds exported or imported parameters without an optimizer"):
    loop.train(config, exported)


# A stranger's file


def rewritten(folder: Path, change) -> None:
  """Writes the file anew, with its arrays and texts changed."""
  path = folder / params_file.FILE
  with safetensors.safe_open(path, "np") as file:
    arrays, metadata = {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata())  # noqa: SIM118
  change(arrays, metadata)
  safetensors.numpy.save_file(arrays, path, metadata)


TABLE = "target_embedding/table"


def transposed(arrays, metadata):
  arrays[TABLE] = np.ascontiguousarray(arrays[TABLE].T)


def of_integers(arrays, metadata):
  arrays[TABLE] = arrays[TABLE].astype(np.int64)


def with_another(arrays, metadata):
  arrays["other"] = arrays[TABLE]


def without_one(arrays, metadata):
  del arrays[TABLE]


def with_another_number(arrays, metadata):
  arrays[TABLE] = arrays[TABLE] + np.float32(1e-7)


def without_sums(arrays, metadata):
  metadata["checksums"] = "[" * 9999


def without_a_step(arrays, metadata):
  metadata["step"] = "-1"


@pytest.mark.parametrize(
  ("change", "message"),
  [
    (transposed, r"has shape \(8, 277\), but the model's \(277, 8\)"),
    (of_integers, "has type I64, but must have F32 or BF16; copy it again"),
    (with_another, "other is only in the file"),
    (without_one, "target_embedding/table is only in the model"),
    (with_another_number, "it holds other numbers than were saved"),
    (without_sums, "it has no checksums"),
    (without_a_step, "does not say of which step it is"),
  ],
  ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_file_of_something_else_is_refused(exported, change, message):
  rewritten(exported, change)
  with pytest.raises((InputError, RunError), match=message):
    runs.open(exported).model()


@pytest.mark.parametrize(
  ("content", "message"),
  [
    (b"", "is damaged, or not of the format safetensors"),
    (b"\x80\x05K\x01.", "has a header of 197,590,189,440 bytes"),
    ((1 << 40).to_bytes(8, "little") + b"{}", "has a header of 1,099,511,627,776 bytes"),
    ((2).to_bytes(8, "little") + b"{}", "does not say of which step it is"),
  ],
  ids=["empty", "pickle", "a long header", "no arrays"],
)
def test_a_file_that_is_none_is_refused(exported, content, message):
  (exported / params_file.FILE).write_bytes(content)
  with pytest.raises(InputError, match=message):
    runs.open(exported).model()


def test_a_config_that_asks_for_more_is_refused(exported):
  values = json.loads((exported / "config.json").read_text())
  values["model"]["num_layers"] = 1000
  (exported / "config.json").write_text(json.dumps(values))
  with pytest.raises(InputError, match=r"of another model than config.json .*num_layers is 1000, but there are only"):
    runs.open(exported, accept_edits=True).model()


@pytest.mark.long
@damage.COUNTS
def test_a_damaged_file_loads_as_it_was_or_is_refused(exported, model, record_property, count):
  config, expected = Config(model=model.config.model), by_name(jax.device_get(model.params))

  def attempt():
    _, params = params_file.read(epath.Path(exported), config, "last")
    assert_same_bits(by_name(jax.device_get(params)), expected)

  attempt()  # the whole file is not refused
  refused = damage.read_damaged([exported / params_file.FILE], count, attempt, record_property)
  assert refused > count // 2


def test_a_file_of_holes_is_refused(exported):
  with (exported / params_file.FILE).open("r+b") as file:
    file.truncate(1 << 40)
  with pytest.raises(InputError, match=r"has 1,099,511,627,776 bytes, but only [\d,]+ of them are data"):
    runs.open(exported).model()


@pytest.mark.parametrize("step", ["0", "beste", False, -1])
def test_a_step_that_is_none_is_said(original, step):
  with pytest.raises(InputError, match=f"^step is {step!r}, but must be a number, last or best$"):
    Translator.load(original, step=step)
