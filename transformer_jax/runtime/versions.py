"""The versions of the packages that made a result; without them the result cannot be reproduced."""

import subprocess
from importlib import metadata
from pathlib import Path

_GIT_SECONDS = 5.0  # the time limit; git takes longer only on a file system with problems


def versions(*packages: str) -> dict[str, str]:
  """The versions of this package and the given packages, by name."""
  return {"transformer_jax": own_version(), **{name: metadata.version(name) for name in packages}}


def own_version(file: Path = Path(__file__)) -> str:
  """The package's version, with the commit if `file` is in a git repository: `0.1.0+g2cad3f4163c0`.

  `.dirty` at the end means that the code differs from the commit (PEP 440, local version identifiers).
  """
  try:
    version = metadata.version("transformer_jax")
  except metadata.PackageNotFoundError:  # a checkout that is not installed
    version = "0"
  try:
    # A package that is installed inside another repository is not tracked by that repository.
    if not _git(file, "ls-files", file.name):
      return version
    commit = _git(file, "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=.dirty")
  except (OSError, subprocess.SubprocessError):  # no git, no repository, or no commit in it
    return version
  return f"{version}+g{commit}"


def _git(file: Path, *arguments: str) -> str:
  command = ["git", "-C", str(file.parent), *arguments]
  return subprocess.run(command, capture_output=True, check=True, text=True, timeout=_GIT_SECONDS).stdout.strip()
