"""Which code made a run, as its provenance names it."""

import os
import re
import shutil
import subprocess
from importlib import metadata

import pytest

from transformer_jax.runtime import versions

VERSION = metadata.version("transformer_jax")


def git(folder, *arguments):
  identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
  done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], capture_output=True, check=True, text=True)
  return done.stdout.strip()


@pytest.mark.skipif(not shutil.which("git"), reason="without git there is no commit")
def test_the_commit_and_whether_the_code_is_that_of_the_commit(tmp_path, monkeypatch):
  monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)  # a user's commits may have to be signed
  file, other = tmp_path / "code.py", tmp_path / "installed.py"
  file.write_text("a = 1\n")
  assert versions.own_version(file) == VERSION  # no repository
  git(tmp_path, "init")
  assert versions.own_version(file) == VERSION  # not in it
  git(tmp_path, "add", "code.py")
  assert versions.own_version(file) == VERSION  # no commit
  git(tmp_path, "commit", "-m", "first")
  git(tmp_path, "tag", "v7")
  commit = git(tmp_path, "rev-parse", "HEAD")[:12]
  other.write_text("b = 1\n")
  assert versions.own_version(file) == f"{VERSION}+g{commit}"
  assert versions.own_version(other) == VERSION  # another's repository
  file.write_text("a = 2\n")
  assert versions.own_version(file) == f"{VERSION}+g{commit}.dirty"


def test_without_git(tmp_path, monkeypatch):
  monkeypatch.setenv("PATH", str(tmp_path))
  assert versions.own_version() == VERSION


def test_of_packages():
  assert versions.versions("numpy") == {
    "transformer_jax": versions.own_version(),
    "numpy": metadata.version("numpy"),
  }


def test_a_checkout_that_is_not_installed_has_no_version(monkeypatch):
  def missing(name):
    raise metadata.PackageNotFoundError(name)

  monkeypatch.setattr(metadata, "version", missing)
  assert re.fullmatch(r"0(\+g[0-9a-f]{12}(\.dirty)?)?", versions.own_version())
