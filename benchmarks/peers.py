"""Virtual environments of the libraries that this project is compared with, separate from the project's environment.

torch is installed first, as the other packages would choose another build. PyPI's torch for Linux is a CUDA build,
which is as fast on CPU but much larger; for the smaller build set `PIP_EXTRA_INDEX_URL` to PyTorch's index of CPU
builds before the first run.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from transformer_jax.runtime.files import user_cache

# The requirements of each `pip install`, in their order.
TORCH = (("torch==2.13.0", "numpy"),)
# JoeyNMT imports two packages that it does not require.
JOEYNMT = (*TORCH, ("joeynmt==2.3.0", "setuptools<81", "importlib_metadata"))
TRANSFORMERS = (*TORCH, ("transformers==5.24.0", "sentencepiece"))
CTRANSLATE2 = (("ctranslate2==4.8.5", "numpy"),)


def python(name: str, requirements: tuple[tuple[str, ...], ...], folder: str | None = None) -> Path:
  """The interpreter of a virtual environment with these requirements; the first call makes the environment.

  Args:
    name: the name of the environment.
    requirements: the requirements of each `pip install`, such as `JOEYNMT`;
      other requirements make another environment.
    folder: the folder of all environments; None means one in the user's cache.
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
  """The versions of packages in an environment, for the report."""
  program = (
    "import json, sys; from importlib.metadata import version; print(json.dumps(list(map(version, sys.argv[1:]))))"
  )
  found = subprocess.run([interpreter, "-c", program, *packages], check=True, capture_output=True, text=True).stdout
  return dict(zip(packages, json.loads(found), strict=True))


def _own_environment() -> dict[str, str]:
  """This process' environment variables, without those that would show an installer the project's packages."""
  return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
