"""Standard error that is full or that nobody reads ends no program, and standard output ends it in order."""

import json
import os
import subprocess
import sys

import pytest

import train
from tests.example_run import write_corpus

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")

FAIL = f'"{sys.executable}" -m transformer_jax score --hypotheses /nowhere --reference /nowhere'

# All that says something on standard error: a plain line, a bar, a warning, a log record, what is never flushed.
SPEAKS = """
import logging, sys, warnings
from transformer_jax.runtime import progress
from transformer_jax.runtime.standard_streams import open_standard_error
open_standard_error()
for _ in range(1000):
  progress.say("a line")
  print("an error", file=sys.stderr)
sys.stderr.isatty = lambda: True
with progress.Progress("step", total=3) as bar:
  bar.update(1)
  bar.note("a note")
warnings.warn("a warning")
logging.getLogger("transformer_jax").warning("a record")
sys.stderr.write("no line feed")
print("done")
"""


def shell(command, **options):
  buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
  return subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=buffered, **options)


@pytest.mark.parametrize("redirected", ["2>/dev/full", "2> >(true)", "2>&-"])
def test_whatever_is_said_where_it_cannot_be_written_the_program_goes_on(redirected):
  done = shell(f"\"{sys.executable}\" -c '{SPEAKS}' {redirected}")
  assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_what_can_be_written_is_written_at_once():
  said = f"\"{sys.executable}\" -c '{SPEAKS}\nimport os; os._exit(7)'"
  done = shell(said)
  assert done.returncode == 7
  assert done.stderr.count("a line\n") == done.stderr.count("an error\n") == 1000
  assert "a warning" in done.stderr and "a record" in done.stderr and "a note" in done.stderr


@pytest.mark.parametrize(
  ("command", "status"),
  [
    (f"{FAIL} 2>/dev/full", 2),
    (f'"{sys.executable}" "{train.__file__}" --config=/nowhere 2>/dev/full', 2),
    (f'"{sys.executable}" "{train.__file__}" --help >/dev/full', 1),
    (f'"{sys.executable}" "{train.__file__}" --help | head -1; exit ${{PIPESTATUS[0]}}', 0),
    (f'"{sys.executable}" -m transformer_jax translate --help >/dev/full', 1),
    (f'"{sys.executable}" -m transformer_jax score --hypotheses {__file__} --reference {__file__} >/dev/full', 1),
  ],
)
def test_the_status_is_that_of_the_work(command, status):
  done = shell(command)
  assert done.returncode == status
  assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


@pytest.fixture
def training(tmp_path):
  """A training of three updates, and its run folder."""
  prefix = write_corpus(tmp_path)
  (tmp_path / "tiny.py").write_text(f"""
from transformer_jax.config import Config, Corpus, DataConfig, DecodeConfig, EvaluateConfig, TrainConfig
from transformer_jax.model.config import ModelConfig
def get_config():
  return Config(
    data=DataConfig(corpus=Corpus.TEXT, train="{prefix}", validation="", test="{prefix}", row_length=16),
    model=ModelConfig(vocab_size=290, num_layers=1, d_model=8, d_ff=16, num_heads=2),
    train=TrainConfig(steps=3, batch_tokens=64, log_every=1),
    decode=DecodeConfig(beam_size=1, max_source_length=16, extra_length=3),
  )
""")
  return (
    f'"{sys.executable}" "{train.__file__}" --config="{tmp_path}/tiny.py" --workdir="{tmp_path}/run"',
    tmp_path / "run",
  )


@pytest.mark.slow
@pytest.mark.parametrize(
  ("redirected", "status"),
  [
    ("2>/dev/full", 0),
    ("2>&1 | head -2; exit ${PIPESTATUS[0]}", 0),
    ("2>/dev/full | true; exit ${PIPESTATUS[0]}", 0),
    ("| true; exit ${PIPESTATUS[0]}", 0),
    (">/dev/full", 1),
  ],
)
def test_training_goes_on_and_is_saved(training, redirected, status):
  command, workdir = training
  done = shell(f"{command} {redirected}")
  assert done.returncode == status, done.stderr
  assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
  assert [json.loads(line)["step"] for line in (workdir / "metrics.jsonl").read_text().splitlines()] == [1, 2, 3]
  assert (workdir / "checkpoints" / "3").is_dir()
  assert (workdir / "report.html").exists() == (status == 0)
