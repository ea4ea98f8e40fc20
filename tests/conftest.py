"""Eight devices on the CPU, no silent broadcasting of ranks; set before JAX starts."""

import os

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"

import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(autouse=True)
def _own_cache_folder(tmp_path_factory, monkeypatch):
  """Tests neither read nor fill the user's cache."""
  monkeypatch.setenv("TRANSFORMER_JAX_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
