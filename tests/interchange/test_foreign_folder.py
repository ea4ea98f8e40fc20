"""A folder of another library: paths that are none, settings that are none, and numbers that are no floats."""

import numpy as np
import pytest
import safetensors.numpy

from transformer_jax.interchange.foreign_folder import ForeignFolder
from transformer_jax.runtime.errors import InputError


@pytest.mark.parametrize(
  ("path", "message"),
  [
    ("nowhere", r"nowhere is no folder: give the one with model\.safetensors or pytorch_model\.bin"),
    ("file", r"file is no folder: give the one with model\.safetensors"),
    ("/hf/model", "/hf/model would be read as hf://model, which is in a bucket"),
    ("gs://bucket/model", "gs://bucket/model is not on this machine: copy the folder here"),
  ],
)
def test_a_path_that_is_no_folder_of_this_machine(tmp_path, monkeypatch, path, message):
  monkeypatch.chdir(tmp_path)
  (tmp_path / "file").touch()
  with pytest.raises(InputError, match=message):
    ForeignFolder(path)


@pytest.mark.parametrize("content", ["[]", "3", "null"])
def test_settings_that_are_no_object(tmp_path, content):
  (tmp_path / "config.json").write_text(content)
  with pytest.raises(InputError, match=r"config\.json is no object of settings: copy it again"):
    ForeignFolder(tmp_path).settings("config.json")


@pytest.mark.parametrize(("dtype", "name"), [(np.int8, "I8"), (np.float64, "F64")])
def test_numbers_that_are_no_floats_of_32_bits_are_refused(tmp_path, dtype, name):
  """As those of a quantised model, which mean nothing without their scales."""
  arrays = {"a": np.ones(3, dtype), "b": np.full(3, 0.5, np.float16)}
  safetensors.numpy.save_file(arrays, tmp_path / "model.safetensors")
  (tmp_path / "pytorch_model.bin").write_bytes(b"damaged")  # which is not looked at
  with ForeignFolder(tmp_path).weights() as weights:
    np.testing.assert_array_equal(weights.array("b"), np.full(3, 0.5, np.float32), strict=True)
    with pytest.raises(InputError, match=f"a has numbers of the type {name}, which is not"):
      weights.array("a")
