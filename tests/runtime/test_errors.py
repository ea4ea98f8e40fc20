"""What a failure of the file system tells the user."""

import errno
import os
import pickle

import pytest

from transformer_jax.decoding.line_warning import LanguageWarning, LineWarning
from transformer_jax.runtime.errors import InputError, OptionError, RunError, first_line, writing


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


@pytest.mark.parametrize(
  "made",
  [OptionError("beam_size", "is 0"), LineWarning(7, "is long"), LanguageWarning(7, "tells no language")],
  ids=lambda made: type(made).__name__,
)
def test_what_is_made_of_several_texts_comes_back_from_another_process(made):
  """A pool of processes pickles what a worker raises or returns."""
  found = pickle.loads(pickle.dumps(made))
  assert type(found) is type(made) and str(found) == str(made) and vars(found) == vars(made)


def test_an_option_from_another_process_has_its_flag():
  assert pickle.loads(pickle.dumps(OptionError("beam_size", "is 0"))).of_flag() == "--beam-size is 0"


@pytest.mark.parametrize(
  ("error", "expected"),
  [
    (AssertionError(), "AssertionError"),
    (ValueError("\n two\nthree"), "two"),
    (ValueError("x" * 300), "x" * 197 + "..."),
  ],
)
def test_the_first_line_of_an_error_is_never_empty(error, expected):
  assert first_line(error) == expected
