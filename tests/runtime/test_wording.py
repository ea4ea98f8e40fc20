import pytest

from transformer_jax.runtime.wording import duration, summary


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


@pytest.mark.parametrize(
  ("seconds", "expected"),
  [
    (0.4, "less than a second"),
    (1, "1 second"),
    (59.7, "1 minute"),
    (3725, "1 hour 2 minutes"),
    (7205, "2 hours"),
    (3 * 86_400 + 4 * 3600 + 1800, "3 days 4 hours"),
  ],
)
def test_a_time_has_its_two_largest_units(seconds, expected):
  assert duration(seconds) == expected
