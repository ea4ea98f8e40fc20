"""Run folders of strangers: nothing in them is run, and what they claim is not believed."""

import gc
import itertools
import json
import os
import pickle
import random
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import tensorstore
from etils import epath
from sentencepiece import sentencepiece_model_pb2

from tests import fuzz_run_folder
from tests.example_commands import make_run
from tests.model.example import random_state
from transformer_jax import runs
from transformer_jax.runs import checkpoint_files
from transformer_jax.runtime import untrusted
from transformer_jax.runtime.errors import InputError, RunError, one_line
from transformer_jax.tasks.translation import TASK

VOCAB = 277

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
  """A run folder with one checkpoint, and without digests: those of a stranger fit whatever he put there."""
  folder = make_run(tmp_path_factory.mktemp("run"))
  (folder / "SHA256SUMS").unlink()
  return folder


@pytest.fixture
def workdir(original, tmp_path):
  return Path(shutil.copytree(original, tmp_path / "run"))


def set_config(workdir, **values):
  path = workdir / "config.json"
  config = json.loads(path.read_text())
  for name, value in values.items():
    group, key = name.split("__")
    config[group][key] = value
  path.write_text(json.dumps(config))


def refused(workdir, error, match):
  with pytest.raises(error, match=match) as caught:
    runs.open(workdir).model()
  assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000


@pytest.fixture(autouse=True, scope="module")
def _frozen():
  """What there is before these tests is not garbage, so that `gc.collect` looks at little."""
  gc.collect()
  gc.freeze()
  yield
  gc.unfreeze()


@pytest.fixture(autouse=True)
def _reads_that_are_left_behind(_frozen):
  """Where one array cannot be read, orbax leaves the reading of the others behind: Python says so now, not later."""
  yield
  gc.collect()


# JSON


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ('{"a": 1, "b": 2, "a": 1}', "the key 'a' is there twice"),
    ('{"a": NaN}', "NaN is no finite number"),
    ('{"a": [-Infinity]}', "-Infinity is no finite number"),
    ('{"a": 1e999}', "1e999 is no finite number"),
    ("1" * 5000, "a number of 5000 digits"),
    ("{" + "".join(f'"{n}":1,' for n in range(300_000)) + '"7":1}', "the key '7' is there twice"),  # in little time
    ("[" * 100_000, "nested too deeply"),
    ('{"a":' * 100_000, "nested too deeply"),
    ("[" * 101 + "]" * 101, "nested too deeply"),
    ('{"a": "\ud800"}', "cannot be read"),
    ("\x00", "cannot be read"),
    ("", "cannot be read"),
    (" " * (1 << 24) + "1", "more than 16,777,216 bytes"),
  ],
)
def test_json_that_is_none(tmp_path, text, message):
  path = epath.Path(tmp_path) / "some.json"
  path.write_bytes(text.encode(errors="surrogatepass"))
  with pytest.raises(InputError, match=message) as caught:
    untrusted.read_json(path)
  assert "some.json" in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 1000


def test_json_that_is_one(tmp_path):
  values = {"a": [1, -2.5, "é\u2028", None, True, {"a": 10**18, "b": [[[]]]}]}
  path = epath.Path(tmp_path) / "some.json"
  path.write_text(json.dumps(values))
  assert untrusted.read_json(path) == values


@pytest.mark.parametrize(
  ("values", "message"),
  [
    ({"model__d_model": "8" * 10**6}, r"config.model.d_model is '888+\.\.\.8+', but must be int"),
    ({"model__d_model": [[[[[[[[1]]]]]]]]}, "config.model.d_model is"),
    ({"model__d_model": 8.0}, "config.model.d_model is 8.0, but must be int"),
    ({"model__d_model": True}, "config.model.d_model is True"),
    ({"model__\x1b[2J\n": 1}, r"\\x1b\[2J\\n' is not a key"),
    ({"model__" + "long" * 999: 1}, r"'longlong.*\.\.\..*long' is not a key"),
    ({"model__family": ["transformer"]}, "config.model.family is"),
    ({"model__family": "os:system"}, "config.model.family is 'os:system', but must be one of"),
    ({"model__vocab_size": 278}, "has 277 tokens, but .* says 278: take both from one run"),
    ({"decode__beam_size": 10**9}, "beam_size"),
    ({"decode__extra_length": 10**9}, "extra_length"),
    ({"decode__extra_length": 1 << 16}, "extra_length is 65536, but must be from 1 to 1024"),
    ({"decode__max_source_length": 10**9}, "max_source_length"),
    ({"model__num_layers": 10**9}, "config.model.num_layers is 1000000000, but must be at most 1,000"),
    ({"model__attention_window": 1 << 31}, "attention_window is 2147483648, but must be at most 16,777,216"),
  ],
)
def test_configs_that_are_none(workdir, values, message):
  set_config(workdir, **values)
  refused(workdir, InputError, message)


def test_messages_are_one_printable_line():
  assert one_line("a\x1b[2J\r\nb\u2028c\x9b") == "a [2J b c"
  assert len(one_line("a" * 10**6)) == 1000


# Sizes that a config or a checkpoint claims


@pytest.mark.parametrize(
  ("values", "message"),
  [
    ({"model__num_layers": 1000}, "config.model.num_layers is 1000, but there are only 31 arrays"),
    ({"model__num_layers": 2}, "layers_1/.* is only in the model"),
    ({"model__d_model": 1 << 24}, r"has shape \(.*8.*\) and type float32, but the model's \(.*16777216"),
    ({"model__d_ff": 1 << 24}, r"has shape \(.*13.*\) and type float32, but the model's \(.*16777216"),
    ({"model__num_heads": 8}, "has shape"),
    ({"model__d_k": 1 << 24}, "has shape"),
  ],
)
def test_a_config_of_other_sizes_than_the_checkpoint(workdir, values, message, capfd):
  set_config(workdir, **values)
  refused(workdir, InputError, rf"the checkpoints in .* are of another model than config.json .*{message}")
  assert not capfd.readouterr().err


def test_a_newer_checkpoint_of_another_model_is_not_used(workdir, capfd):
  """An older one of the config's model is."""
  newer = workdir / "checkpoints" / "7"
  shutil.copytree(workdir / "checkpoints" / "0", newer)
  name, leaf = next(iter(checkpoint_files.headers(epath.Path(workdir), 7, "params")[0].items()))
  replace_array(workdir, name, [*leaf.shape, 2], [*leaf.shape, 2], step=7)
  assert runs.open(workdir).model().step == 0
  assert "the checkpoint of step 7 is damaged and not used: " in capfd.readouterr().err


def headers(workdir):
  return checkpoint_files.headers(epath.Path(workdir), 0, "params")[0]


def replace_array(workdir, name, shape, chunks, step=0):
  """Puts an array of which nothing is stored but its header into the place of one in the checkpoint."""
  folder = workdir / "checkpoints" / str(step) / "params"
  spec = {
    "driver": "zarr",
    "kvstore": {"driver": "ocdbt", "base": f"file://{folder}/", "path": f"{name.replace('/', '.')}/"},
    "metadata": {"shape": shape, "chunks": chunks, "dtype": "<f4", "compressor": None},
  }
  tensorstore.open(spec, create=True, delete_existing=True).result()


def test_arrays_that_claim_more_than_their_files_can_hold(workdir, capfd):
  """Config and headers agree on 10^8 numbers, of which none is there."""
  for name, leaf in headers(workdir).items():
    if 13 in leaf.shape:
      shape = [1 << 24 if size == 13 else size for size in leaf.shape]
      replace_array(workdir, name, shape, [min(size, 1000) for size in shape])
  set_config(workdir, model__d_ff=1 << 24)
  refused(workdir, RunError, "every checkpoint in .* is damaged")
  assert "bytes, but its files have only" in capfd.readouterr().err


def test_a_vocabulary_with_a_long_piece(workdir):
  """A model that writes it again and again would fill the memory."""
  path = workdir / "tokenizer.model"
  model = sentencepiece_model_pb2.ModelProto.FromString(path.read_bytes())
  model.pieces[-1].piece = "a" * 5_000
  path.write_bytes(model.SerializeToString())
  with pytest.raises(InputError, match=r"has a piece of 5,000 bytes, but one may have at most 4,096"):
    _ = runs.open(workdir).tokenizer


def test_holes_are_no_data(workdir, capfd):
  """A file that is one hole of a terabyte takes no place on the disk."""
  hole = workdir / "checkpoints" / "0" / "params" / "hole"
  with hole.open("wb") as file:
    file.truncate(1 << 40)
  assert untrusted.stored(epath.Path(hole)) == 0
  hole.unlink()
  with (workdir / "checkpoints" / "0" / "params" / "manifest.ocdbt").open("r+b") as file:
    file.truncate(1 << 40)  # TensorStore would read it as a whole
  refused(workdir, RunError, "every checkpoint in .* is damaged")
  assert "manifest.ocdbt has 1,099,511,627,776 bytes, but only" in capfd.readouterr().err


def test_a_small_hole_does_not_count_as_data(workdir, capfd):
  with (workdir / "checkpoints" / "0" / "params" / "hole").open("wb") as file:
    file.truncate(1 << 26)
  test_arrays_that_claim_more_than_their_files_can_hold(workdir, capfd)


def test_the_data_of_a_file_is_what_was_written(tmp_path):
  with (tmp_path / "file").open("wb") as file:
    for place in (1 << 24, 1 << 28):
      file.seek(place)
      file.write(b"x" * 70_001)
    file.truncate(1 << 30)
  assert 2 * 70_001 <= untrusted.stored(epath.Path(tmp_path / "file")) < 1 << 20
  (tmp_path / "whole").write_bytes(b"\0" * 70_001)
  assert untrusted.stored(epath.Path(tmp_path / "whole")) == 70_001
  with pytest.raises(InputError, match=r"has 1,073,741,824 bytes, but only [\d,]+ of them are data"):
    untrusted.require_stored(epath.Path(tmp_path / "file"))
  untrusted.require_stored(epath.Path(tmp_path / "whole"))


@pytest.mark.skipif(sys.platform != "linux", reason="a path of 2,400 characters")
def test_folders_in_folders_without_end(workdir):
  folders = [workdir / "a"]
  folders[0].mkdir()
  while len(folders) < 1200:
    folders.append(folders[-1] / "a")
    os.mkdir(folders[-1])
  try:
    if sys.version_info < (3, 12):
      refused(workdir, InputError, "has folders in folders without end: remove them")
    else:
      runs.open(workdir).model()
  finally:
    for folder in reversed(folders):  # Python's own way to remove them is as recursive
      os.rmdir(folder)


def test_parts_that_are_larger_than_their_array(workdir, capfd):
  replace_array(workdir, "target_embedding/table", [VOCAB, 8], [10**7, 10**7])
  refused(workdir, RunError, "every checkpoint in .* is damaged")
  assert "table has shape (277, 8), but is stored in parts of (10000000, 10000000)" in capfd.readouterr().err


def zeros_in_few_bytes(size):
  """A frame of Zstandard: blocks of one repeated byte."""
  blocks = size // (1 << 17)
  return bytes.fromhex("28b52ffd0050") + b"".join(
    ((block == blocks - 1) | 1 << 1 | 1 << 20).to_bytes(3, "little") + b"\0" for block in range(blocks)
  )


def test_a_part_that_unpacks_to_more_than_its_array(workdir, capfd):
  bomb = zeros_in_few_bytes(1 << 33)
  assert len(bomb) < 300_000
  base = f"file://{workdir}/checkpoints/0/params/"
  store = tensorstore.KvStore.open({"driver": "ocdbt", "base": base}).result()
  store.write("target_embedding.table/0.0", bomb).result()
  before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  refused(workdir, RunError, "every checkpoint in .* is damaged")
  assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kilobytes
  assert "the checkpoint of step 0 is damaged and not used" in capfd.readouterr().err


def test_a_checkpoint_without_a_time(workdir):
  path = workdir / "checkpoints" / "0" / "_CHECKPOINT_METADATA"
  path.write_text(json.dumps(json.loads(path.read_text()) | {"commit_timestamp_nsecs": 0.5}))
  refused(workdir, RunError, "checkpoints/0/_CHECKPOINT_METADATA is damaged, delete it")
  path.unlink()
  assert runs.open(workdir).model().step == 0


def test_a_description_that_is_too_long_to_be_one(workdir, capfd):
  with open(workdir / "checkpoints" / "0" / "params" / "_METADATA", "r+b") as file:
    file.truncate(1 << 40)  # which the disk does not hold
  refused(workdir, RunError, "every checkpoint in .* is damaged")
  assert "_METADATA has more than" in capfd.readouterr().err


@pytest.mark.parametrize(
  ("name", "error"), [("checkpoints/0/_CHECKPOINT_METADATA", RunError), ("metrics.jsonl", InputError)]
)
def test_text_that_is_too_long_to_be_read(workdir, name, error):
  with open(workdir / name, "ab") as file:
    file.truncate(1 << 40)
  with pytest.raises(error, match=f"{name} .*has more than [0-9,]+ bytes"):
    _ = runs.open(workdir).model(), runs.open(workdir).metrics


# Files


def test_links_that_lead_out_are_refused(workdir, tmp_path):
  for name in ("config.json", "tokenizer.model", "checkpoints/0/params", "checkpoints"):
    outside = tmp_path / "outside"
    shutil.move(workdir / name, outside)
    (workdir / name).symlink_to(outside)
    refused(workdir, InputError, f"{name} is a link that leads out of the run folder")
    (workdir / name).unlink()
    shutil.move(outside, workdir / name)
  (workdir / "extra").symlink_to("/dev/zero")
  refused(workdir, InputError, "leads out of the run folder")


def test_links_inside_and_to_the_whole_folder_are_followed(workdir, tmp_path):
  (workdir / "config.json").rename(workdir / "the.config")
  (workdir / "config.json").symlink_to("the.config")
  (tmp_path / "link").symlink_to(workdir)
  assert runs.open(tmp_path / "link").model().step == 0


def test_links_to_folders_are_not_counted_again_and_again(workdir, capfd):
  """Two links in each of 40 folders to the next one: 2^40 ways to the last."""
  folders = [workdir / "checkpoints" / "0" / "params" / f"x{number}" for number in range(41)]
  for folder, following in itertools.pairwise(folders):
    folder.mkdir()
    for name in "ab":
      (folder / name).symlink_to(f"../{following.name}")
  folders[-1].mkdir()
  refused(workdir, RunError, "every checkpoint in .* is damaged")
  assert "is a link to a folder" in capfd.readouterr().err


def test_a_pipe_is_not_waited_for(workdir):
  (workdir / "provenance.json").unlink()
  os.mkfifo(workdir / "provenance.json")
  refused(workdir, InputError, "provenance.json is neither a file nor a folder")


PLANTED = """
import sys
from transformer_jax import runs

clean, planted = sys.argv[1:]
runs.open(clean).model()  # imports what loading needs
events = []

def hook(event, args):
  code = getattr(args[0], "co_filename", args[0]) if args else ""
  if event in ("open", "exec", "compile", "import") and planted in str([code, *args[1:2]]):
    events.append((event, str(code)))
  if event.startswith(("pickle.", "marshal.", "os.system", "os.exec", "os.posix_spawn", "subprocess.", "ctypes.dl")):
    events.append((event, str(code)))

sys.addaudithook(hook)
runs.open(planted).model()
print(*sorted({f"{event} {file}" for event, file in events}), sep="\\n")
"""


class Bomb:
  def __reduce__(self):
    return os.system, ("touch /tmp/a-pickle-was-loaded",)


def test_no_code_of_the_folder_is_run(original, workdir):
  """Python itself reports what it opens and runs: files with code in them are not even opened."""
  code = "raise SystemExit('code was run')"
  bomb = pickle.dumps(Bomb())
  step = workdir / "checkpoints" / "0"
  for folder in (workdir, workdir / "checkpoints", step, step / "params"):
    for name in ("__init__.py", "sitecustomize.py", "config.py", "orbax.py", "conftest.py", "usercustomize.py"):
      (folder / name).write_text(code)
    for name in ("params.pkl", "checkpoint.pkl", "treedef.pickle", "data.npy", "tokenizer.pkl"):
      (folder / name).write_bytes(bomb)
  metadata = json.loads((step / "_CHECKPOINT_METADATA").read_text())
  metadata["item_handlers"] = dict.fromkeys(metadata["item_handlers"], "config.Handler")
  (step / "_CHECKPOINT_METADATA").write_text(json.dumps(metadata))
  run = subprocess.run(
    [sys.executable, "-c", PLANTED, str(original), str(workdir)],
    capture_output=True,
    text=True,
    check=False,
    cwd=Path(checkpoint_files.__file__).parent.parent,
    env=os.environ | {"PYTHONPATH": ":".join(sys.path)},
  )
  assert run.returncode == 0, run.stderr
  lines = run.stdout.splitlines()
  opened = {Path(line.removeprefix("open ")).name for line in lines if line.startswith("open ")}
  assert {"config.json", "tokenizer.model"} <= opened
  assert not {name for name in opened if name.endswith((".py", ".pkl", ".pickle", ".npy"))}
  assert all(line.startswith("open ") for line in lines), lines


# Damage at random; `python -m tests.fuzz_run_folder` does more of it


@pytest.mark.long
def test_damaged_files_end_in_one_sentence(original, workdir):
  """Not the tokenizer's, which is damaged in a process of its own (`test_tokenizer.py`)."""
  generator = random.Random(0)
  files = [file for file in fuzz_run_folder.small_files(original) if file.name != "tokenizer.model"]
  assert len(files) > 12
  for file in files:
    content = (original / file).read_bytes()
    damaged = fuzz_run_folder.mutated(content, generator)
    (workdir / file).write_bytes(damaged)
    assert fuzz_run_folder.loaded(str(workdir)) in ("loaded", "InputError", "RunError"), (file, damaged[:200])
    (workdir / file).write_bytes(content)
  assert fuzz_run_folder.loaded(str(workdir)) == "loaded"


def test_what_loads_is_what_was_saved(workdir):
  """The comparison is of the arrays, whatever their headers are checked for."""
  model = runs.open(workdir).model()
  jax.tree.map(np.testing.assert_array_equal, model.params, random_state(model.config, TASK).params)
