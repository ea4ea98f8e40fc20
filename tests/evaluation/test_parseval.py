"""Labelled precision, recall and F1: EVALB's sample, its rules one by one, and counts by hand."""

import pytest

from tests.evaluation.random_trees import examples
from transformer_jax.data.trees import read_trees
from transformer_jax.evaluation.parseval import constituents, parseval
from transformer_jax.runtime.errors import InputError


def tree(text):
  (found,) = read_trees([text], "a tree")
  return found


EVALB = [45.15, 44.56, 45.76, 26.00, 87.85]
GOLD = "(S (NP (P he)) (VP (Q has) (NP (R a) (T cat))))"
# The trees of EVALB's sample in other words, with what its file sample.rsl says: right, reference's, parse's, tags.
SAMPLE = {
  GOLD: (4, 4, 4, 4),
  "(S (NP (P he)) (VP (Q has) (X (R a) (T cat))))": (3, 4, 4, 4),
  "(S (NP (P he)) (VP (Q has) (NP (R a) (U cat))))": (4, 4, 4, 3),
  "(S (X (P he)) (VP (Q has) (NP (R a) (U cat))))": (3, 4, 4, 3),
  "(S (NP (P he)) (VP (Q has) (R a) (NP (T cat))))": (3, 4, 4, 4),
  "(S (NP (P he) (Q has)) (NP (R a) (T cat)))": (2, 4, 3, 4),
  "(S (P he) (Q has) (R a) (T cat))": (1, 4, 1, 4),
  "(TOP (P he) (Q has) (R a) (T cat))": (0, 4, 0, 4),
  "(S (NP (P he)) (VP (Q has) (NP (NP (R a) (T cat)))))": (4, 4, 5, 4),
  "(S (NP (P he)) (VP (Q has) (NP (NP (NP (NP (NP (R a) (T cat))))))))": (4, 4, 8, 4),
  "(TOP (S (NP (P he)) (VP (Q has) (NP (R a) (T cat)))))": (4, 4, 4, 4),
  "(S (NP-SBJ-1 (P he)) (VP-X (Q has) (NP (R a) (T cat))))": (4, 4, 4, 4),
  "(S (NP (P he)) (VP (Q has) (NP (R a) (T cat))) (-NONE- *))": (4, 4, 4, 4),
}


@pytest.mark.parametrize("text", SAMPLE)
def test_evalbs_sample(text):
  right, expected, found, tags = SAMPLE[text]
  scores = parseval([tree(text)], [tree(GOLD)])
  assert scores.recall == pytest.approx(100 * right / expected)
  assert scores.precision == pytest.approx(100 * right / found if found else 0)
  assert scores.f1 == pytest.approx(200 * right / (expected + found))
  assert scores.complete_match == 100 * (right == expected == found)
  assert scores.tag_accuracy == 25 * tags


def test_counts_are_summed_over_all_sentences():
  scores = parseval([*map(tree, SAMPLE)], [tree(GOLD)] * len(SAMPLE))
  right, expected, found, tags = map(sum, zip(*SAMPLE.values(), strict=True))
  assert (scores.precision, scores.recall) == pytest.approx((100 * right / found, 100 * right / expected))
  assert scores.f1 == pytest.approx(2 * scores.precision * scores.recall / (scores.precision + scores.recall))
  assert scores.tag_accuracy == pytest.approx(100 * tags / (4 * len(SAMPLE)))
  assert (scores.sentences, round(scores.complete_match, 2)) == (13, 38.46)  # five of thirteen


def test_random_trees_have_the_scores_of_evalb():
  """EVALB printed these for the 600 pairs (`tests/parity/test_evalb.py` runs it)."""
  scores = parseval(*examples())
  found = [scores.f1, scores.recall, scores.precision, scores.complete_match, scores.tag_accuracy]
  assert [round(value, 2) for value in found] == EVALB


def test_punctuation_is_no_word_and_no_constituent():
  gold = tree("(S (NP (NN a)) (PRN (, ,)) (VP (VB b)) (. .))")
  assert constituents(gold, [True, False, True, False]) == {("S", 0, 2): 1, ("NP", 0, 1): 1, ("VP", 1, 2): 1}
  # A comma in the noun phrase or outside it is the same.
  other = tree("(S (NP (NN a) (, ,)) (VP (VB b) (. .)))")
  assert parseval([other], [gold]).f1 == 100


def test_the_references_tags_tell_what_is_punctuation():
  gold = tree("(S (NP (NN a)) (NP (NN b) (, ,)))")
  assert parseval([tree("(S (NP (, a)) (NP (NN b)) (NN ,))")], [gold]).f1 == 100


def test_particles_are_adverbs():
  assert parseval([tree("(S (ADVP (RB up)))")], [tree("(S (PRT (RP up)))")]).f1 == 100
  assert parseval([tree("(S (NP (RB up)))")], [tree("(S (PRT (RP up)))")]).f1 == 50


def test_without_a_constituent_nothing_is_right():
  nothing = tree("(TOP (NN a))")
  assert parseval([nothing], [tree("(NP (NN a))")]).f1 == 0
  assert (parseval([nothing], [nothing]).f1, parseval([nothing], [nothing]).complete_match) == (0, 100)


def test_what_cannot_be_scored_is_refused():
  with pytest.raises(InputError, match="0 parses but 0 references"):
    parseval([], [])
  with pytest.raises(InputError, match="1 parses but 2 references"):
    parseval([tree(GOLD)], [tree(GOLD)] * 2)
  with pytest.raises(InputError, match="parse 2 has 1 words, but its reference has 4"):
    parseval([tree(GOLD), tree("(S (NN a))")], [tree(GOLD)] * 2)
