"""Early stopping by its definition: a run ends after the first `patience` validations in a row without a best."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_jax.trainer.early_stopping import EarlyStopping

NUMBERS = st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.0, math.nan, math.inf]), max_size=12)


def stops_after(numbers: list[float], patience: int) -> int | None:
  """How many validations there are until the last `patience` are no better than the best of all before them."""
  for count in range(patience, len(numbers) + 1):
    before, last = numbers[: count - patience], numbers[count - patience : count]
    if not any(number < min([*before, *last[:i]], default=math.inf) for i, number in enumerate(last)):
      return count
  return None


@given(NUMBERS, st.integers(1, 4))
def test_the_run_ends_where_the_definition_says(numbers, patience):
  numbers = [math.inf if math.isnan(number) else number for number in numbers]
  stopping, ended = EarlyStopping(patience), None
  for count, number in enumerate(numbers, 1):
    again = EarlyStopping(patience)  # a run that resumes
    again.restore(stopping.numbers())
    stopping = again
    best = stopping.add(count, number)
    assert best == (number < min(numbers[: count - 1], default=math.inf))
    if stopping.is_over:
      ended = count
      break
  assert ended == stops_after(numbers, patience)


def test_without_patience_no_run_ends():
  stopping = EarlyStopping(0)
  for step in range(9):
    stopping.add(step, 1.0)
  assert not stopping.is_over and (stopping.best_step, stopping.waited) == (0, 8)


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_what_is_not_finite_is_never_the_best(number):
  assert not EarlyStopping(3).add(1, number)
