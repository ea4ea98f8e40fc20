"""Minimum Bayes risk against a plain double loop with sacreBLEU."""

import math
import random

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF

from transformer_jax.decoding.minimum_bayes_risk import ranked
from transformer_jax.decoding.translation import Translation
from transformer_jax.evaluation.pairwise import sentence_scores

WORDS = ["ein", "Haus,", "haus", "steht", "am", "See", ".", "(alt)", "\N{SNOWMAN}", "seine"]
TEXTS = [" ".join(random.Random(i).choices(WORDS, k=i % 7 + 1)) for i in range(23)]
TEXTS += ["", "  ", "a", "ein Haus"]
METRICS = {
  ("chrf", "13a", False): CHRF(),
  ("chrf", "13a", True): CHRF(lowercase=True),
  ("bleu", "13a", False): BLEU(effective_order=True),
  ("bleu", "none", True): BLEU(effective_order=True, tokenize="none", lowercase=True, force=True),
}


@pytest.mark.parametrize(("name", "tokenize", "lowercase"), METRICS)
def test_scores_of_all_pairs_are_those_of_sacrebleu(name, tokenize, lowercase):
  metric = METRICS[name, tokenize, lowercase]
  found = sentence_scores(name, TEXTS, tokenize=tokenize, lowercase=lowercase)
  expected = [[metric.sentence_score(hypothesis, [reference]).score for reference in TEXTS] for hypothesis in TEXTS]
  np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
  assert len(np.unique(np.round(found, 6))) > 50


@pytest.mark.parametrize("drawn", [True, False])
@pytest.mark.parametrize("utility", ["chrf", "bleu"])
def test_the_ranking_is_that_of_a_double_loop(utility, drawn):
  metric = METRICS[utility, "13a", False]
  generator = random.Random(5)
  texts = generator.choices(TEXTS, k=17)
  translations = [Translation(text, 0.0, generator.uniform(-9, -1), 3) for text in texts]
  assert len(set(texts)) < len(texts)
  weights = [1.0 if drawn else math.exp(translation.log_probability) for translation in translations]
  expected = {
    text: sum(w * metric.sentence_score(text, [other]).score for w, other in zip(weights, texts, strict=True))
    / sum(weights)
    for text in texts
  }
  found = ranked(translations, utility, drawn=drawn)
  assert len(found) == len(expected)
  scores = [round(each.score, 9) for each in found]
  assert scores == sorted(scores, reverse=True)
  for each in found:
    assert each.score == pytest.approx(expected[each.text], rel=1e-9)
    assert each.log_probability in [t.log_probability for t in translations if t.text == each.text]


def test_of_equal_ones_the_first_comes_first_however_their_scores_are_rounded():
  """The first and the third are (100 + 50 + 2 * 50) / 4 and (50 + 0 + 2 * 100) / 4; in float64 they differ."""
  texts = ["ein Haus", "ein Heim", "das Haus", "das Haus"]
  found = ranked([Translation(text, 0.0, -1.0, 3) for text in texts], "bleu", drawn=True)
  assert [each.text for each in found] == ["ein Haus", "das Haus", "ein Heim"]
  assert found[0].score == pytest.approx(62.5) == pytest.approx(found[1].score)


def test_one_translation_is_its_own_reference():
  [best] = ranked([Translation("ein Haus", -1.0, -800.0, 3)], "chrf", drawn=False)
  assert best == Translation("ein Haus", 100.0, -800.0, 3)  # exp(-800) is 0


@pytest.mark.parametrize("drawn", [True, False])
@pytest.mark.parametrize("utility", ["chrf", "bleu"])
def test_of_translations_that_are_equally_good_the_first_comes_first(utility, drawn):
  """No two of these have a letter in common, so each is like itself alone; one that comes twice is better."""
  texts = ["bb", "aa", "dd", "cc"]
  for order in (texts, texts[::-1]):
    found = ranked([Translation(text, 0.0, -2.0, 3) for text in order], utility, drawn=drawn)
    assert [each.text for each in found] == order and [each.score for each in found] == pytest.approx([25.0] * 4)
    found = ranked([Translation(text, 0.0, -2.0, 3) for text in (*order, order[2])], utility, drawn=drawn)
    assert [each.text for each in found] == [order[i] for i in (2, 0, 1, 3)]
    assert [each.score for each in found] == pytest.approx([40.0, 20.0, 20.0, 20.0])


def test_of_equal_texts_the_first_one_stays():
  """Different tokens can spell one text."""
  twice = [Translation("ein Haus", 0.0, log_probability, tokens) for log_probability, tokens in ((-3.0, 5), (-2.0, 4))]
  [best] = ranked(twice, "bleu", drawn=True)
  assert (best.log_probability, best.tokens) == (-3.0, 5)
