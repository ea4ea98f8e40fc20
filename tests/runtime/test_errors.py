"""What a failure of the file system tells the user."""

import errno
import os

import pytest

from transformer_jax.runtime.errors import InputError, RunError, writing


@pytest.mark.parametrize(
  ("number", "advice"),
  [
    (errno.ENOSPC, "make room"),
    (errno.EDQUOT, "make room"),
    (errno.EACCES, "make it writable, or choose another place"),
    (errno.EROFS, "make it writable, or choose another place"),
    (errno.EIO, "mend that"),
  ],
)
def test_the_advice_fits_the_error(number, advice):
  with pytest.raises(RunError) as found, writing("a/file"):
    raise OSError(number, os.strerror(number))
  assert str(found.value) == (
    f"cannot write a/file: {os.strerror(number)}; what was saved before is untouched: {advice}, and give the same "
    "command again"
  )


def test_a_name_that_cannot_be_is_an_input():
  with pytest.raises(InputError, match="cannot write a/file: Is a directory; choose another name"), writing("a/file"):
    raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
