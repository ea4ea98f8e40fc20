"""benchmarks/first_update.py: no start has the programs or the rows of another."""

import re
from types import SimpleNamespace

import pytest

from transformer_jax.runtime.errors import InputError


def test_each_start_has_its_own_empty_cache(program, tmp_path, monkeypatch):
  first_update, environments = program("first_update"), []

  def popen(command, *, env, **_):
    environments.append(env)
    return SimpleNamespace(stderr=["packing", "step 1: loss 9.1"], kill=lambda: None, communicate=lambda: None)

  monkeypatch.setattr(first_update.subprocess, "Popen", popen)
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
  args = SimpleNamespace(vocab_size=300, batch_tokens=64)
  assert all(first_update.seconds_to_first(tmp_path, args, shard) >= 0 for shard in (0, 7))
  assert len({environment["TRANSFORMER_JAX_CACHE"] for environment in environments}) == 2
  assert not any("JAX_COMPILATION_CACHE_DIR" in environment for environment in environments)


def test_a_folder_without_news_is_named(program, tmp_path):
  with pytest.raises(InputError, match=re.escape(f"--news {tmp_path} has no NAME.en, plain or .xz")):
    program("wmt_size").pairs_of_news(str(tmp_path))
