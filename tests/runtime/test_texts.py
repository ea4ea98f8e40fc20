"""What is a text."""

import pytest

from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.texts import is_text, require_text


def test_a_surrogate_is_named():
  with pytest.raises(InputError, match=r"pair 3 has half of a surrogate pair, U\+DC80, as character 2"):
    require_text("é\udc80", "pair 3")
  require_text("\U0001f600", "an emoji")


@pytest.mark.parametrize("text", ["", "a", "\x00", "\ud7ff\ue000", "\U0010ffff", "\ud800", "a\udfff", "\ud83d\ude00"])
def test_a_text_is_what_can_be_written(text):
  try:
    text.encode()
    can = True
  except UnicodeEncodeError:
    can = False
  assert is_text(text) == can
