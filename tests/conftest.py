"""Eight devices on the CPU and no silent broadcasting of ranks, set before JAX starts."""

import os
import tempfile

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"

import hypothesis
import jax
import pytest

from tests.example_run import write_corpus
from transformer_jax.runtime import progress

hypothesis.settings.register_profile("untimed", deadline=None)  # a machine may be busy
hypothesis.settings.load_profile("untimed")
jax.config.update("jax_numpy_rank_promotion", "raise")
# Most of the time of these small tests is the compiler's.
jax.config.update("jax_disable_most_optimizations", True)
# What is said of silences would depend on how busy the machine is.
progress._SECONDS_OF_SILENCE = 3600.0


@pytest.fixture(autouse=True, scope="session")
def _compile_once():
  """What one test compiles another finds. TRANSFORMER_JAX_TEST_CACHE names a folder to keep it in."""
  with tempfile.TemporaryDirectory() as folder:
    jax.config.update("jax_compilation_cache_dir", os.environ.get("TRANSFORMER_JAX_TEST_CACHE", folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    yield


@pytest.fixture(autouse=True, scope="module")
def _forget_programs():
  """A process with some thousands of compiled programs has more memory maps than Linux allows, and crashes."""
  yield
  jax.clear_caches()


@pytest.fixture(autouse=True)
def _own_cache_folder(tmp_path_factory, monkeypatch):
  """Tests neither read nor fill the user's cache."""
  monkeypatch.setenv("TRANSFORMER_JAX_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def prefix(tmp_path):
  """A small corpus, as `config.data.train` names one."""
  return write_corpus(tmp_path)
