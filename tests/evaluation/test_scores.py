"""Scores against sacreBLEU's own command-line functions, and known cases."""

import dataclasses
import json
import logging
import urllib.error

import pytest
import sacrebleu
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from transformer_jax.config import EvaluateConfig
from transformer_jax.evaluation import bootstrap, report
from transformer_jax.evaluation.scores import check_tokenization, exact_match_by_group, score
from transformer_jax.runtime.errors import InputError

REFERENCES = ["Ein Mann reitet ein Pferd .", "Zwei Hunde spielen im Schnee .", "Die Frau liest."]
TRANSLATIONS = ["Ein Mann reitet auf einem Pferd .", "zwei Hunde spielen im Schnee .", "Die Frau liest."]


def test_equals_sacrebleu():
  found = score(TRANSLATIONS, REFERENCES)
  assert found.bleu == sacrebleu.corpus_bleu(TRANSLATIONS, [REFERENCES]).score
  assert found.chrf == sacrebleu.corpus_chrf(TRANSLATIONS, [REFERENCES]).score
  assert found.sentences == 3
  assert found.exact_match == pytest.approx(1 / 3)


def test_words_are_those_of_13a_unless_said_otherwise():
  """13a leaves German quotation marks at their word, as it knows the punctuation of ASCII alone; `intl` parts them."""
  reference, translation = ["Der Hund sah „Ihn“ im Park."], ["Der Hund sah „Sie“ im Park."]
  found = score(translation, reference)
  # Of 7 words 6 are right, of 6 pairs 4, of 5 triples 2, of 4 quadruples none, for which smoothing counts a half.
  assert found.bleu == pytest.approx(100 * (6 / 7 * 4 / 6 * 2 / 5 * 1 / 8) ** 0.25)
  assert found.bleu == sacrebleu.corpus_bleu(translation, [reference], tokenize="13a").score
  assert abs(found.bleu - sacrebleu.corpus_bleu(translation, [reference], tokenize="intl").score) > 1
  assert "|tok:13a|" in found.bleu_signature
  told = report.build_report(report.Text(None, translation), report.Text(None, reference))
  assert told["scores"]["bleu"]["score"] == found.bleu
  assert EvaluateConfig().tokenize == "13a"


@pytest.mark.parametrize("tokenize", ["none", "char", "zh", "intl"])
@pytest.mark.parametrize("lowercase", [True, False])
def test_options_are_sacrebleus_and_in_the_signature(tokenize, lowercase):
  found = score(TRANSLATIONS, REFERENCES, tokenize=tokenize, lowercase=lowercase)
  expected = sacrebleu.corpus_bleu(TRANSLATIONS, [REFERENCES], tokenize=tokenize, lowercase=lowercase)
  assert found.bleu == expected.score
  assert f"|tok:{tokenize}|" in found.bleu_signature
  assert f"|case:{'lc' if lowercase else 'mixed'}|" in found.bleu_signature
  assert sacrebleu.__version__ in found.chrf_signature


def test_perfect_translations_score_100():
  found = score(REFERENCES, REFERENCES)
  assert (found.bleu, found.chrf, found.exact_match) == (pytest.approx(100), pytest.approx(100), 1)


def test_the_exact_match_of_each_group():
  translations, references = ["a", "b", "c", "d", "e", "f"], ["a", "x", "c", "x", "e", "x"]
  groups = ["two", "one", "two", "one", "three", "three"]
  expected = "exact match of two 100.0%, one 0.0%, three 50.0%"
  assert exact_match_by_group(translations, references, groups) == expected


def test_an_empty_translation_counts_as_a_sentence():
  assert score(["", "", ""], REFERENCES).sentences == 3


def test_as_json_and_as_text():
  found = score(TRANSLATIONS, REFERENCES)
  assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
  assert found.bleu_signature in str(found) and found.chrf_signature in str(found) and "3 sentences" in str(found)


def test_bad_input():
  with pytest.raises(InputError, match="3 translations but 2 references"):
    score(TRANSLATIONS, REFERENCES[:2])
  with pytest.raises(InputError, match="no sentences"):
    score([], [])
  with pytest.raises(InputError, match="'13b' is not a tokenisation; sacreBLEU has 13a, "):
    check_tokenization("13b")
  for given in (("Ein Haus.", "Ein Haus!"), (["Ein Haus."], "Ein Haus.")):
    with pytest.raises(InputError, match=r"is one str, but must be several: write \["):
      score(*given)


def test_a_tokenisation_that_has_to_be_downloaded(monkeypatch):
  """Without a network: flores200, for example, fetches a model."""

  class Offline(BLEU):
    def __init__(self, **_):
      raise urllib.error.URLError("no network")

  monkeypatch.setattr("sacrebleu.metrics.bleu.BLEU", Offline)
  with pytest.raises(InputError, match=r"^sacreBLEU's tokenisation 'flores200' cannot be used here: .*no network"):
    check_tokenization("flores200")


def test_warns_of_tokenized_text_where_asked(caplog):
  tokenized = ["a b c ."] * 100
  with caplog.at_level(logging.WARNING):
    score(tokenized, tokenized)
    assert not caplog.records
    score(tokenized, tokenized, warn_if_tokenized=True)
  assert "tokenized period" in caplog.text


def test_scores_cannot_be_changed():
  with pytest.raises(dataclasses.FrozenInstanceError):
    score(["a"], ["a"]).bleu = 99.0  # type: ignore[misc]


def test_case_counts_in_a_bootstrap_unless_it_is_told_not_to():
  systems, references = [["A b c d"], ["a b c d"]], ["a b c d"]
  first, second = bootstrap.resampled(systems, references, resamples=3)["bleu"]
  assert first.score < 99 < second.score
  first, second = bootstrap.resampled(systems, references, lowercase=True, resamples=3)["bleu"]
  assert first.score == second.score > 99 and second.p_value == 1


def test_equal_scores_of_different_translations_have_the_p_value_of_sacrebleu():
  """As many wrong words, but in other lines."""
  references = ["a b c d e f g h", "one two three four five six"] * 20
  systems = [
    [lines[0], lines[1]] * 20
    for lines in (("a b c d e f g x", references[1]), (references[0], "one two three four five y"))
  ]
  first, second = bootstrap.resampled(systems, references)["ter"]
  named = [("first", systems[0]), ("second", systems[1])]
  _, found = PairedTest(named, {"TER": TER()}, [references], test_type="bs", n_samples=1000)()
  assert first.score == second.score and second.p_value == found["TER"][1].p_value < 0.5
  for ours, theirs in zip((first, second), found["TER"], strict=True):
    assert ours.margin == theirs.ci and 0 < ours.margin < ours.score


@pytest.mark.parametrize("seed", ["abc", "", "-5", "0", "none", "9" * 5000])
def test_a_seed_by_which_draws_would_differ_is_refused(monkeypatch, seed):
  monkeypatch.setenv("SACREBLEU_SEED", seed)
  message = r"SACREBLEU_SEED in the environment is '.{0,30}', but must be a whole number from 1 to 10\^19 - 1"
  with pytest.raises(InputError, match=message):
    bootstrap.resampled([TRANSLATIONS], REFERENCES)


def test_the_text_has_each_number_and_the_exact_match_where_it_is_asked_for_and_not_0():
  found = score(TRANSLATIONS, REFERENCES)
  bleu, chrf = (of(TRANSLATIONS, [REFERENCES]).score for of in (sacrebleu.corpus_bleu, sacrebleu.corpus_chrf))
  scores = [f"BLEU {bleu:.2f} ({found.bleu_signature})", f"chrF2 {chrf:.2f} ({found.chrf_signature})"]
  assert str(found).splitlines() == [*scores, "exact match 33.3% of 3 sentences"]
  assert found.describe(exact_match=False).splitlines() == [*scores, "3 sentences"]
  assert str(score(["x"], ["y"])).splitlines()[-1] == "1 sentence"
