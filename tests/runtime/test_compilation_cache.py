"""The compilation cache: used on a second start, and rid of what a kill has cut short."""

import subprocess
import sys
import zlib
from pathlib import Path

import jax
import pytest

from tests.example_commands import plain_environment
from transformer_jax.runtime import compilation_cache, trace_cache
from transformer_jax.runtime.compilation_cache import delete_damaged
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.files import cache_beside, user_cache

PROGRAM = """
import jax, jax.numpy as jnp
from transformer_jax.runtime.compilation_cache import use_compilation_cache
use_compilation_cache()
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
print(jax.jit(lambda x: jnp.sin(x) @ x)(jnp.eye(3)).sum())
"""


@pytest.fixture(scope="module")
def of_a_module():
  return user_cache()


def test_fixtures_of_a_module_do_not_see_the_users_cache(of_a_module, tmp_path_factory):
  assert of_a_module == user_cache() and Path(of_a_module).is_relative_to(tmp_path_factory.getbasetemp())


def start(cache, **environment):
  result = subprocess.run(
    [sys.executable, "-W", "error", "-c", PROGRAM],
    env=plain_environment(cache) | environment,
    capture_output=True,
    text=True,
    check=True,
  )
  return result.stdout, result.stderr


def entries(cache):
  return {path: path.stat().st_mtime_ns for path in cache.glob("compiled/*/*-cache")}


@pytest.mark.long
def test_what_is_compiled_is_kept_and_what_is_damaged_is_made_again(tmp_path):
  first, _ = start(tmp_path)
  compiled = entries(tmp_path)
  assert compiled
  assert start(tmp_path) == (first, "")
  assert entries(tmp_path) == compiled
  for path in compiled:
    path.write_bytes(path.read_bytes()[:100])
  assert start(tmp_path) == (first, "")
  assert entries(tmp_path).keys() == compiled.keys()
  assert all(path.stat().st_size > 100 for path in compiled)


@pytest.mark.long
def test_a_folder_that_cannot_be_written_is_done_without(tmp_path):
  (tmp_path / "file").write_text("")
  out, errors = start(tmp_path / "file")
  assert out and not errors


@pytest.mark.parametrize("damage", [lambda whole: whole[:-1], lambda whole: whole[:1], lambda whole: b""])
def test_only_damaged_entries_are_deleted(tmp_path, damage):
  whole = zlib.compress(b"program" * 1000)
  (tmp_path / "a-cache").write_bytes(whole)
  (tmp_path / "b-cache").write_bytes(damage(whole))
  (tmp_path / "c-cache").write_bytes(b"\x28\xb5\x2f\xfd not of zlib")
  (tmp_path / "0-cache").symlink_to("nothing")  # as an entry that another process deletes meanwhile
  delete_damaged(tmp_path)
  (tmp_path / "0-cache").unlink()
  assert sorted(path.name for path in tmp_path.glob("*-cache")) == ["a-cache", "c-cache"]


def test_processors_with_other_instructions_have_folders_of_their_own(monkeypatch):
  def name(flags, clock):
    text = f"processor\t: 0\ncpu MHz\t: {clock}\nflags\t\t: {flags}\n" * 2
    monkeypatch.setattr(compilation_cache.Path, "read_text", lambda path: text)
    return compilation_cache._processor()

  assert name("fpu avx2", 1009) == name("fpu avx2", 3001) != name("fpu avx2 avx512f", 1009)


def test_the_cache_is_where_the_environment_says(monkeypatch, tmp_path):
  """The project's own variable counts most, then that of the XDG convention, then the home folder."""
  monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
  monkeypatch.setenv("TRANSFORMER_JAX_CACHE", str(tmp_path / "own"))
  assert user_cache() == tmp_path / "own"
  monkeypatch.delenv("TRANSFORMER_JAX_CACHE")
  assert user_cache() == tmp_path / "xdg" / "transformer_jax"
  monkeypatch.delenv("XDG_CACHE_HOME")
  assert user_cache() == tmp_path / "home" / ".cache" / "transformer_jax"


@pytest.mark.parametrize("whose", ["everybody", "another"])
def test_a_folder_in_which_others_can_write_is_not_used(monkeypatch, tmp_path, whose):
  """What they put there would run here."""
  kept = []
  monkeypatch.setattr(trace_cache, "use", kept.append)
  monkeypatch.setenv("TRANSFORMER_JAX_CACHE", str(tmp_path))
  folder = tmp_path / "compiled" / compilation_cache._processor()
  folder.mkdir(parents=True)
  if whose == "everybody":
    folder.chmod(0o777)
  else:
    monkeypatch.setattr(compilation_cache.os, "geteuid", lambda: folder.stat().st_uid + 1)
  before = jax.config.values["jax_compilation_cache_dir"]
  jax.config.update("jax_compilation_cache_dir", None)
  try:
    compilation_cache.use_compilation_cache()
    assert (jax.config.values["jax_compilation_cache_dir"], kept) == (None, [])
  finally:
    jax.config.update("jax_compilation_cache_dir", before)


def test_a_folder_that_jax_was_told_of_stays_and_no_traced_programs_are_kept(monkeypatch, tmp_path):
  kept = []
  monkeypatch.setattr(trace_cache, "use", kept.append)
  before = jax.config.values["jax_compilation_cache_dir"]
  jax.config.update("jax_compilation_cache_dir", str(tmp_path))
  try:
    compilation_cache.use_compilation_cache()
    assert (jax.config.values["jax_compilation_cache_dir"], kept) == (str(tmp_path), [])
  finally:
    jax.config.update("jax_compilation_cache_dir", before)


def test_the_cache_is_in_no_bucket(monkeypatch):
  monkeypatch.setenv("TRANSFORMER_JAX_CACHE", "gs://bucket/cache")
  for find in (user_cache, lambda: cache_beside("runs/x")):
    with pytest.raises(InputError, match="TRANSFORMER_JAX_CACHE is gs://bucket/cache, but the cache is read in place"):
      find()
