"""Sizes of memory as text."""

import pytest

from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.sizes import in_bytes


@pytest.mark.parametrize(
  ("text", "size"),
  [("16GB", 16 * 10**9), ("16GiB", 2**34), ("512MB", 512 * 10**6), ("2e9", 2 * 10**9), ("1.5 G", 1.5e9)],
)
def test_sizes_of_memory(text, size):
  assert in_bytes(text) == size


@pytest.mark.parametrize(
  "text", ["", "GB", "-1GB", "16", "999K", "1..2GB", "16 bananas", "0", "0.5", "1e400", "1e999GB", "1e300 TB"]
)
def test_what_is_no_size_of_memory(text):
  with pytest.raises(InputError, match="is not a size of memory: write it as 16GB"):
    in_bytes(text)
