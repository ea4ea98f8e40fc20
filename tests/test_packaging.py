"""The package as a wheel has it: the configs of the checkout are inside."""

import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_an_installed_package_has_the_configs(tmp_path):
  """Laid out as setup.py says; no program waits for JAX here."""
  ignore = shutil.ignore_patterns("__pycache__", ".*")
  shutil.copytree(ROOT / "transformer_jax", tmp_path / "site" / "transformer_jax", ignore=ignore)
  shutil.copytree(ROOT / "configs", tmp_path / "site" / "transformer_jax" / "configs", ignore=ignore)
  (tmp_path / "empty").mkdir()
  for config, words in (("rnn:luong-dot", "--config.model.score=dot"), ("configs/big.py", "--config.model.d_ff=4096")):
    done = subprocess.run(
      [sys.executable, "-m", "transformer_jax", "train", f"--config={config}", "--help"],
      cwd=tmp_path / "empty",
      env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
      capture_output=True,
      text=True,
    )
    assert (done.returncode, done.stderr) == (0, "") and words in done.stdout


def test_a_wheel_has_every_file_of_the_package():
  """`package_data` names those that are no modules."""
  setup = configparser.ConfigParser()
  setup.read(ROOT / "setup.cfg")
  named = set()
  for package, patterns in setup["options.package_data"].items():
    folder = ROOT / package.replace(".", "/")
    named |= {path for pattern in patterns.split(",") for path in folder.glob(pattern.strip())}
  files = (ROOT / "transformer_jax").rglob("[!.]*")  # an editor's own begin with a dot
  there = {path for path in files if path.is_file() and path.parent.name != "__pycache__"}
  assert named == {path for path in there if path.suffix != ".py"} and len(named) > 5


def test_setup_names_every_package_and_the_configs():
  pytest.importorskip("setuptools")  # which Python's venv has no longer
  program = "import setuptools; setuptools.setup = lambda **given: print(sorted(given['packages'])); import setup"
  done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
  rooms = {".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "transformer_jax").rglob("__init__.py")}
  assert done.stdout.strip() == str(sorted(rooms | {"transformer_jax.configs"})), done.stderr
