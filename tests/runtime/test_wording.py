import pytest

from transformer_jax.runtime.wording import summary


@pytest.mark.parametrize(
  ("text", "expected"),
  [
    ("Trains a model: without flags\nthat of the first example.", "Trains a model"),
    ("Reads (Sennrich et al. 2016) a\ntext. Then it\nwrites.", "Reads (Sennrich et al. 2016) a text"),
    ("Classifies (configs/bert.py:classify), once.", "Classifies (configs/bert.py:classify), once"),
    ("No end", "No end"),
    ("", ""),
  ],
)
def test_a_summary_ends_at_the_first_colon_or_full_stop(text, expected):
  assert summary(text) == expected
