"""Eight devices on the CPU and no silent broadcasting of ranks, set before JAX looks for them."""

import os
import signal
import tempfile
from pathlib import Path

import hypothesis
import jax  # reads XLA_FLAGS when it is first asked for a device
import jaxlib.version
import pytest

from tests.example_run import write_corpus
from transformer_jax.runtime import progress
from transformer_jax.runtime.process import raise_gc_threshold

# Most of the time of these small tests is XLA's compiler. It is twice as fast with its older code generator, in one
# part, and faster without optimizations. With TRANSFORMER_JAX_TEST_COMPILER=default the programs that tests start are
# compiled as users have them; CI runs some of the tests so.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
if os.environ.get("TRANSFORMER_JAX_TEST_COMPILER") != "default":
  os.environ["XLA_FLAGS"] += " --xla_cpu_parallel_codegen_split_count=1"
  os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # for the programs that tests start
  if jaxlib.version.__version_info__ < (0, 11):  # later ones have no other code generator
    os.environ["XLA_FLAGS"] += " --xla_cpu_use_fusion_emitters=false"

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell; tests send it
  signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # as under nohup
  signal.signal(signal.SIGHUP, signal.SIG_DFL)
hypothesis.settings.register_profile("untimed", deadline=None)  # a machine may be busy
hypothesis.settings.load_profile("untimed")
raise_gc_threshold()  # collecting garbage is a fifth of the time of tracing
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_numpy_rank_promotion", "raise")
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
  """A process with some thousands of compiled programs has more memory maps than Linux allows (65,530), and crashes."""
  yield
  maps = Path("/proc/self/maps")
  if not maps.exists() or len(maps.read_bytes().splitlines()) > 20_000:
    jax.clear_caches()


@pytest.fixture(autouse=True)
def _own_cache_folder(tmp_path_factory, monkeypatch):
  """Tests neither read nor fill the user's cache."""
  monkeypatch.setenv("TRANSFORMER_JAX_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(autouse=True, scope="session")
def _own_cache_folder_of_fixtures(tmp_path_factory):
  """Nor do fixtures of a module, which are made before those of a test."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv("TRANSFORMER_JAX_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    yield


@pytest.fixture
def prefix(tmp_path):
  """A small corpus, as `config.data.train` names one."""
  return write_corpus(tmp_path)
