"""The test of a difference over several seeds: with one seed it is sacreBLEU's, and equal seeds add nothing."""

import numpy as np
import pytest

from transformer_jax.evaluation import bootstrap
from transformer_jax.runtime.errors import InputError

WORDS = ["a", "man", "in", "an", "orange", "hat", "is", "looking", "at", "something", "near", "the", "old", "boat"]


@pytest.fixture
def paired(program):
  return program("paired")


def texts(noises: list[float], sentences: int = 29) -> tuple[list[list[str]], list[str]]:
  """Translations that differ from the references in a share of their words."""
  draw = np.random.default_rng(3)
  reference = [draw.choice(WORDS, draw.integers(3, 17)) for _ in range(sentences)]
  found = [
    [" ".join(np.where(draw.random(len(line)) < noise, draw.choice(WORDS, len(line)), line)) for line in reference]
    for noise in noises
  ]
  return found, [" ".join(line) for line in reference]


def test_with_one_seed_it_is_the_test_of_sacrebleu(paired):
  (first, other), reference = texts([0.2, 0.22])
  expected = bootstrap.resampled([first, other], reference, tokenize="none", lowercase=True)["bleu"][1].p_value
  assert paired.p_value([first], [other], reference) == pytest.approx(expected)


def test_equal_seeds_make_nothing_surer(paired):
  (first, other), reference = texts([0.2, 0.22])
  once = paired.p_value([first], [other], reference)
  assert 0.05 < once < 0.9
  assert paired.p_value([first] * 2, [other] * 2, reference) == pytest.approx(once, abs=0.01)


def test_the_same_translations_do_not_differ(paired):
  (first, other), reference = texts([0.2, 0.25])
  assert paired.p_value([first, other], [first, other], reference) == 1.0


def test_other_numbers_of_lines_are_refused(paired):
  with pytest.raises(InputError, match="there are 1 translations but 2 references"):
    paired.p_value([["a"]], [["a"]], ["a", "b"])
