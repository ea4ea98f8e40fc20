"""What the library shows of itself: its names, its help, and the examples of its docstrings."""

import doctest
import importlib
import importlib.metadata
import os
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import transformer_jax
from transformer_jax.config import flags

PACKAGE = Path(transformer_jax.__file__).parent
# The modules with examples in their docstrings.
EXAMPLES = sorted(
  ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
  for path in PACKAGE.rglob("[!.]*.py")
  if re.search(r"^ +>>> ", path.read_text(), re.MULTILINE)
)


def test_help_shows_what_there_is():
  said = pydoc.plain(pydoc.render_doc(transformer_jax))
  for shown in ("class Config", "class Transformer", "class Translator", "train(", "runs"):
    assert shown in said, shown
  assert set(transformer_jax.__all__) <= set(dir(transformer_jax))
  assert callable(transformer_jax.runs.open)
  with pytest.raises(AttributeError, match="no attribute 'Trainer'"):
    _ = transformer_jax.Trainer


def test_what_is_not_installed_has_no_version(monkeypatch):
  def missing(name):
    raise importlib.metadata.PackageNotFoundError(name)

  monkeypatch.setattr(importlib.metadata, "version", missing)
  assert not hasattr(transformer_jax, "__version__")
  assert "class Config" in pydoc.plain(pydoc.render_doc(transformer_jax))


@pytest.mark.parametrize("name", ["program", "program.main"])
def test_a_program_whose_package_imports_this_one_keeps_its_folder(tmp_path, name):
  (tmp_path / "program").mkdir()
  (tmp_path / "beside.py").touch()
  (tmp_path / "program" / "__init__.py").write_text("import transformer_jax")
  for file in ("main.py", "__main__.py"):
    (tmp_path / "program" / file).write_text("import beside")
  environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
  assert subprocess.run([sys.executable, "-m", name], cwd=tmp_path, env=environment, check=False).returncode == 0


def test_help_trains_what_the_command_trains():
  assert 'flags.read_config("numbers", {})' in (transformer_jax.__doc__ or "")
  assert flags.read_config("numbers", {}) == flags.read_config(None, {})


@pytest.mark.parametrize(
  ("name", "libraries"),
  [
    ("transformer_jax", {"jax"}),
    ("transformer_jax.decoding.translator", {"flax", "optax", "orbax", "jax.extend.pallas"}),
    ("transformer_jax.serve.app", {"flax", "optax", "orbax", "jax.extend.pallas"}),
    ("transformer_jax.trainer.loop", {"tensorboardX", "sacrebleu", "matplotlib"}),  # tensorboardX imports torch
  ],
)
def test_an_import_does_not_wait_for_libraries_that_are_needed_later(name, libraries):
  program = f"import {name}, sys; sys.exit(str({libraries} & set(sys.modules) or ''))"
  done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
  assert done.stderr.strip() == ""


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_give_what_they_show(name):
  found = doctest.testmod(importlib.import_module(f"transformer_jax.{name}"))
  assert found.attempted and not found.failed
