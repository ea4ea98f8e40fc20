"""Virtual environments of the libraries that this project is measured against; none is ever in the project's own.

torch goes first, as the others would choose a build of their own. PyPI's torch for Linux is one for CUDA, which is as
fast on CPU but much larger; for the smaller one set `PIP_EXTRA_INDEX_URL` to PyTorch's index of CPU builds before the
first run.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from transformer_jax.runtime.files import user_cache

# What each `pip install` gets, one after the other.
TORCH = (("torch==2.13.0", "numpy"),)
# JoeyNMT imports two packages that it does not ask for.
JOEYNMT = (*TORCH, ("joeynmt==2.3.0", "setuptools<81", "importlib_metadata"))
TRANSFORMERS = (*TORCH, ("transformers", "sentencepiece"))
CTRANSLATE2 = (("ctranslate2", "numpy"),)


def python(name: str, requirements: tuple[tuple[str, ...], ...], folder: str | None = None) -> Path:
  """The interpreter of a virtual environment with these requirements, made at the first call.

  Args:
    name: of the environment.
    requirements: what each `pip install` gets, such as `JOEYNMT`; others make
      another environment.
    folder: for all environments; None is one in the user's cache.
  """
  digest = hashlib.blake2b(json.dumps([requirements, sys.version]).encode(), digest_size=4).hexdigest()
  environment = (Path(folder) if folder else user_cache() / "peers") / f"{name.lower()}-{digest}"
  interpreter = environment / "bin" / "python"
  complete = environment / "complete"
  if not complete.exists():
    print(f"installing {name} in {environment}", file=sys.stderr, flush=True)
    shutil.rmtree(environment, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    for packages in requirements:
      subprocess.run([interpreter, "-m", "pip", "install", "--quiet", *packages], check=True, env=_own_environment())
    complete.touch()
  return interpreter.absolute()


def versions(interpreter: Path, *packages: str) -> dict[str, str]:
  """What is installed there, for the report."""
  program = (
    "import json, sys; from importlib.metadata import version; print(json.dumps(list(map(version, sys.argv[1:]))))"
  )
  found = subprocess.run([interpreter, "-c", program, *packages], check=True, capture_output=True, text=True).stdout
  return dict(zip(packages, json.loads(found), strict=True))


def _own_environment() -> dict[str, str]:
  """This process' environment without what would let an installer see the project's own packages."""
  return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
