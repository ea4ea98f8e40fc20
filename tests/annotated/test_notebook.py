"""The notebook of the paper runs from top to bottom; its assertions are what the text claims."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

for library in ("ipykernel", "jupytext", "matplotlib", "nbconvert"):
  pytest.importorskip(library)

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "annotated"


@pytest.mark.slow
@pytest.mark.parametrize("page", ["paper.md", "paper.ko.md"])
def test_all_cells_run(page, tmp_path, tmp_path_factory):
  """The page's own command runs, on the devices that a user has. What one page compiles, the other finds."""
  cache = str(tmp_path_factory.getbasetemp() / "compiled")
  environment = os.environ | {"XLA_FLAGS": "", "JAX_COMPILATION_CACHE_DIR": cache}
  command = ["jupytext", "--to", "notebook", "--set-kernel", "python3", "--execute", str(FOLDER / page)]
  command += ["--output", str(tmp_path / "paper.ipynb")]
  done = subprocess.run([sys.executable, "-m", *command], env=environment, capture_output=True, text=True)
  assert done.returncode == 0, done.stderr[-4000:]
  cells = json.loads((tmp_path / "paper.ipynb").read_text())["cells"]
  outputs = [output for cell in cells for output in cell.get("outputs", [])]
  assert not ["".join(output["text"]) for output in outputs if output.get("name") == "stderr"]
  assert sum("image/png" in output.get("data", {}) for output in outputs) == 41
