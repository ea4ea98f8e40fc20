"""Reranking: the line search against a fine grid, BLEU against sacreBLEU, weights that are known."""

import itertools
import math
import random

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from transformer_jax.decoding import reranking
from transformer_jax.evaluation import bleu_statistics
from transformer_jax.evaluation.bleu_statistics import bleu, statistics

WORDS = ["der", "die", "das", "Haus", "Hund.", "läuft,", "am", "See", "und", "(dort)", "bleibt"]


@pytest.fixture(scope="module")
def corpus():
  """References, and for each 2 to 7 candidates that are damaged ones."""
  generator = random.Random(4)
  references = [" ".join(generator.choices(WORDS, k=generator.randint(4, 11))) for _ in range(13)]

  def damaged(text):
    return " ".join(word if generator.random() < 0.7 else generator.choice(WORDS) for word in text.split())

  return references, [[damaged(text) for _ in range(generator.randint(2, 7))] for text in references]


@pytest.fixture(scope="module")
def counts(corpus):
  return [statistics(candidates, reference) for reference, candidates in zip(*corpus, strict=True)]


def score(candidates, references, chosen):
  return BLEU().corpus_score([each[i] for each, i in zip(candidates, chosen, strict=True)], [references]).score


def test_bleu_of_summed_counts_is_sacrebleus(corpus, counts):
  references, candidates = corpus
  for chosen in ([0] * 13, [len(each) - 1 for each in candidates]):
    total = sum(each[i] for each, i in zip(counts, chosen, strict=True))
    assert bleu(total) == pytest.approx(score(candidates, references, chosen), rel=1e-12)
  no_4_gram = statistics(["a b c d"], "a b x y")[0]
  assert bleu(no_4_gram) == pytest.approx(BLEU().corpus_score(["a b c d"], [["a b x y"]]).score) and bleu(no_4_gram) > 0
  lower = statistics(["DER hund ."], "der Hund .", tokenize="none", lowercase=True)
  assert lower[0].tolist() == [3, 2, 1, 0, 3, 2, 1, 0, 3, 3]


def test_a_tokenizer_is_made_once(monkeypatch):
  """Some load a model."""
  made, metrics_by_name = [], bleu_statistics.metrics_by_name
  monkeypatch.setattr(
    bleu_statistics, "metrics_by_name", lambda name, **kw: made.append(name) or metrics_by_name(name, **kw)
  )
  bleu_statistics._tokenizer.cache_clear()
  for lowercase in (False, True, False):
    assert bleu_statistics.words(["A b."], "13a", lowercase) == [["a" if lowercase else "A", "b", "."]]
  assert made == ["13a"]


def test_the_envelope_is_the_best_everywhere():
  generator = np.random.default_rng(0)
  for n in (1, 2, 7, 31):
    # Each candidate is there twice.
    constants, slopes = (np.tile(generator.integers(*ends, n).astype(float), 2) for ends in ((-5, 5), (-3, 4)))
    pieces = reranking.envelope(constants, slopes)
    starts = [start for start, _ in pieces]
    assert starts == sorted(starts) and starts[0] == -math.inf and len(set(starts)) == len(starts)
    for x in np.linspace(-9.03, 9.01, 101):
      [*_, (_, chosen)] = [piece for piece in pieces if piece[0] <= x]
      values = constants + x * slopes
      assert values[chosen] == pytest.approx(values.max(), abs=1e-9)
      same = (constants == constants[chosen]) & (slopes == slopes[chosen])
      assert chosen == np.flatnonzero(same)[0]  # of equal candidates the first, as `best` chooses


def test_the_line_search_finds_what_a_fine_grid_finds(corpus, counts):
  references, candidates = corpus
  generator = np.random.default_rng(1)
  constants, slopes = ([generator.normal(size=len(each)) for each in candidates] for _ in range(2))
  value, found = reranking.line_search(constants, slopes, counts)

  def at(x):
    return score(candidates, references, [np.argmax(a + x * b) for a, b in zip(constants, slopes, strict=True)])

  grid = [at(x) for x in np.tan(np.linspace(-1.57, 1.57, 401))]
  assert found == pytest.approx(at(value), rel=1e-12)
  assert found >= max(grid) - 1e-9 and max(grid) > min(grid) + 1


def test_a_feature_that_knows_the_best_gets_the_weight(corpus, counts):
  """One feature is the sentence's own BLEU, one is noise and one is the same for all candidates."""
  references, candidates = corpus
  generator = np.random.default_rng(2)
  quality = [np.array([bleu(row) for row in own]) for own in counts]
  features = [np.stack([generator.normal(size=len(own)), own, np.full(len(own), 7.0)], axis=1) for own in quality]
  weights, found = reranking.tuned(features, counts)
  chosen = reranking.best(features, weights)
  assert found == pytest.approx(score(candidates, references, chosen), rel=1e-12)
  assert np.abs(weights).sum() == pytest.approx(1)
  alone = [score(candidates, references, reranking.best(features, one)) for one in np.eye(3)]
  assert found >= max(alone) > alone[0] + 5
  oracle = max(
    score(candidates[:4], references[:4], choice)
    for choice in itertools.product(*(range(len(each)) for each in candidates[:4]))
  )
  assert reranking.tuned(features[:4], counts[:4])[1] <= oracle + 1e-9


def test_the_weights_give_the_bleu_that_is_told():
  """Lines of whole numbers often meet in one point, which rounding makes several."""
  tied = [[[5, 2], [-2, 7], [2, -3]], [[1, 5], [5, 1], [0, 6]]]
  counts = [
    [[4, 3, 2, 0, 5, 4, 3, 2, 5, 7], [5, 4, 3, 1, 8, 7, 6, 5, 8, 7], [6, 4, 3, 3, 7, 6, 5, 4, 7, 7]],
    [[7, 5, 4, 3, 8, 7, 6, 5, 8, 7], [6, 4, 4, 2, 8, 7, 6, 5, 8, 7], [2, 2, 0, 0, 4, 3, 2, 1, 4, 7]],
  ]
  generator = np.random.default_rng(3)
  lists = [[np.array(each, float) for each in tied]]
  lists += [[generator.integers(-7, 8, (3, 2)).astype(float) for _ in counts] for _ in range(100)]
  statistics = [np.array(each) for each in counts]

  def bleu_of(features, weights):
    return bleu(sum(own[i] for own, i in zip(statistics, reranking.best(features, weights), strict=True)))

  for features in lists:
    weights, found = reranking.tuned(features, statistics)
    assert found == pytest.approx(bleu_of(features, weights), rel=1e-12)
    assert found >= max(bleu_of(features, one) for one in np.eye(2)) - 1e-9


def test_of_equal_candidates_the_first_is_chosen():
  assert reranking.best([np.array([[1.0], [2.0], [2.0]]), np.array([[0.0]])], np.array([1.0])) == [1, 0]
  assert reranking.best([np.array([[1.0], [2.0]])], np.array([-1.0])) == [0]


def test_no_change_of_one_weight_is_better(counts):
  generator = np.random.default_rng(5)
  for _ in range(10):
    features = [generator.normal(size=(len(own), 4)) for own in counts]
    weights, found = reranking.tuned(features, counts)
    for k in range(4):
      others = np.where(np.arange(4) == k, 0, weights)
      slopes = [each[:, k] for each in features]
      assert reranking.line_search([each @ others for each in features], slopes, counts)[1] <= found + 1e-6
