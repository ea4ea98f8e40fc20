"""With which versions of what something was made: without them no number can be made again."""

import subprocess
from importlib import metadata
from pathlib import Path

_GIT_SECONDS = 5.0  # a file system that takes longer has other troubles


def versions(*packages: str) -> dict[str, str]:
  """Of this package and others, by name."""
  return {"transformer_jax": own_version(), **{name: metadata.version(name) for name in packages}}


def own_version(file: Path = Path(__file__)) -> str:
  """The package's version and, where `file` is of a git repository, its commit: `0.1.0+g2cad3f4163c0`.

  `.dirty` at the end says that the code was not quite that of the commit (PEP 440, local version identifiers).
  """
  version = metadata.version("transformer_jax")
  try:
    # Installed in a folder that is in somebody's repository, it is not part of that.
    if not _git(file, "ls-files", file.name):
      return version
    commit = _git(file, "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=.dirty")
  except (OSError, subprocess.SubprocessError):  # no git, no repository, or no commit in it
    return version
  return f"{version}+g{commit}"


def _git(file: Path, *arguments: str) -> str:
  command = ["git", "-C", str(file.parent), *arguments]
  return subprocess.run(command, capture_output=True, check=True, text=True, timeout=_GIT_SECONDS).stdout.strip()
