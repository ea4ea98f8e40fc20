"""Scores of given translations against sacreBLEU itself."""

import random

import pytest
import sacrebleu

from transformer_jax.inside.scored import Text, Translations, by_length, extremes, lengths_of, scored
from transformer_jax.runtime.errors import InputError

WORDS = ["ein", "Hund", "und", "drei", "Katzen", "schlafen", "im", "Haus", "am", "See"]


def sentences(count, longest, seed):
  generator = random.Random(seed)
  return [" ".join(generator.choices(WORDS, k=generator.randint(3, longest))) for _ in range(count)]


REFERENCES = sentences(101, 17, seed=0)
SOURCES = sentences(101, 13, seed=1)
TEXT = Text("a text", list(zip(SOURCES, REFERENCES, strict=True)))


def noisy(share, seed):
  generator = random.Random(seed)
  change = lambda word: generator.choice(WORDS) if generator.random() < share else word  # noqa: E731
  return [" ".join(map(change, line.split())) for line in REFERENCES]


GOOD, BAD = noisy(0.1, seed=2), noisy(0.4, seed=3)


def without_attention(source, target):
  raise InputError("this model has none")


def translations(lines, text=TEXT):
  return Translations(text, lines, 7, "13a", False, without_attention)


def test_bleu_of_each_length_is_sacrebleus_of_these_sentences():
  unit, lengths = lengths_of(SOURCES)
  assert unit == "words" and lengths == [len(source.split()) for source in SOURCES]
  groups, _ = by_length(lengths, GOOD, REFERENCES, tokenize="13a", lowercase=False)
  assert sum(group.sentences for group in groups) == len(SOURCES) and len(groups) == 6
  for group in groups:
    chosen = [n for n, source in enumerate(SOURCES) if group.least <= len(source.split()) <= group.most]
    expected = sacrebleu.corpus_bleu([GOOD[n] for n in chosen], [[REFERENCES[n] for n in chosen]])
    assert (group.sentences, group.bleu) == (len(chosen), expected.score)


def test_sources_of_one_word_are_measured_in_characters():
  assert lengths_of(["zwei", "dreizehn", "ein Wort"]) == ("characters", [4, 8, 8])


def test_equal_lengths_are_one_group():
  groups, _ = by_length([3] * 5, GOOD[:5], REFERENCES[:5], tokenize="13a", lowercase=False)
  assert [(group.least, group.most, group.sentences) for group in groups] == [(3, 3, 5)]


def test_best_and_worst_are_by_sacrebleus_chrf_of_a_sentence():
  best, worst, signatures = extremes(TEXT, BAD, tokenize="13a", lowercase=False)
  values = [sacrebleu.sentence_chrf(line, [reference]).score for line, reference in zip(BAD, REFERENCES, strict=True)]
  assert [one.chrf for one in best] == sorted(values, reverse=True)[:5]
  assert [one.chrf for one in worst] == sorted(values)[:5]
  for one in (*best, *worst):
    n = one.number - 1
    assert (one.source, one.translation, one.reference) == (SOURCES[n], BAD[n], REFERENCES[n])
    assert one.bleu == sacrebleu.sentence_bleu(BAD[n], [REFERENCES[n]]).score
  assert "eff:yes" in signatures["BLEU"]


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_no_sentence_is_both_best_and_worst(count):
  text = Text("short", TEXT.pairs[:count])
  best, worst, _ = extremes(text, BAD[:count], tokenize="13a", lowercase=False)
  numbers = [one.number for one in (*best, *worst)]
  assert len({*numbers}) == len(numbers) > 0


def test_scores_intervals_and_p_values_are_sacrebleus():
  one, other = scored([translations(GOOD), translations(BAD)])
  for found, lines in ((one, GOOD), (other, BAD)):
    bleu = sacrebleu.metrics.BLEU()
    expected = bleu.corpus_score(lines, [REFERENCES], n_bootstrap=1000)
    assert found.scores["bleu"].score == expected.score
    assert found.scores["bleu"].margin == pytest.approx(expected._ci, rel=1e-3)
    assert found.scores["chrf"].score == sacrebleu.corpus_chrf(lines, [REFERENCES]).score
    assert found.scores["ter"].score == sacrebleu.corpus_ter(lines, [REFERENCES]).score
  assert one.scores["bleu"].p_value is None
  p_value = other.scores["bleu"].p_value
  assert p_value is not None and p_value < 0.01


def test_other_texts_are_not_compared():
  shorter = Text("another text", TEXT.pairs[:53])
  found = scored([translations(GOOD), translations(BAD[:53], shorter)])
  assert [each.scores["bleu"].p_value for each in found] == [None, None]
  assert found[1].scores["bleu"].score == sacrebleu.corpus_bleu(BAD[:53], [REFERENCES[:53]]).score


@pytest.mark.parametrize(("tokenize", "lowercase"), [("char", False), ("13a", True)])
def test_scores_are_with_the_tokenisation_and_case_of_the_run(tokenize, lowercase):
  lines = [line.lower() for line in GOOD]  # of ten words four have a capital letter
  options = {"tokenize": tokenize, "lowercase": lowercase}
  [found] = scored([Translations(TEXT, lines, 7, tokenize, lowercase, without_attention)])
  expected = sacrebleu.corpus_bleu(lines, [REFERENCES], **options).score
  assert found.scores["bleu"].score == expected
  assert abs(expected - sacrebleu.corpus_bleu(lines, [REFERENCES]).score) > 1
  chosen = [n for n, source in enumerate(SOURCES) if len(source.split()) <= found.groups[0].most]
  here, there = ([side[n] for n in chosen] for side in (lines, REFERENCES))
  assert found.groups[0].bleu == sacrebleu.corpus_bleu(here, [there], **options).score


def test_the_tag_of_a_language_is_no_part_of_the_length():
  assert lengths_of(["<2de> zwei", "<2fr> dreizehn"]) == ("characters", [4, 8])
  assert lengths_of(["<2de> ein Wort", "<2de> noch ein Wort"]) == ("words", [2, 3])
