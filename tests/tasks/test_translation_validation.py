"""Scores while training, of translations that are given."""

from types import SimpleNamespace

import pytest
import sacrebleu
from tqdm.utils import disp_len

from tests.example_run import write_pairs
from transformer_jax.config import Config, Corpus, DataConfig, EvaluateConfig
from transformer_jax.decoding.line_warning import LineWarning
from transformer_jax.decoding.translation import Translation
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks import translation_validation
from transformer_jax.tasks.translation import TASK

PAIRS = [("a", "Der Hund sah „Ihn“ im Park."), ("b", "Drei Katzen schlafen im Haus.")]
TRANSLATIONS = ["der Hund sah „Sie“ im Park.", "Drei Katzen schliefen im Haus."]


class Given:
  """In place of a translator."""

  def __init__(self, *args):
    self.params = None

  def translate_lines(self, sentences, *, warn):
    assert sentences == [source for source, _ in PAIRS]
    return ([Translation(text, 0.0, 0.0, 1)] for text in TRANSLATIONS)


@pytest.mark.parametrize(("tokenize", "lowercase"), [("13a", False), ("intl", False), ("char", False), ("13a", True)])
def test_scores_are_with_the_configs_tokenisation_and_case(tokenize, lowercase, monkeypatch):
  monkeypatch.setattr(translation_validation, "Translator", Given)
  config = Config(data=DataConfig(validation=""), evaluate=EvaluateConfig(tokenize=tokenize, lowercase=lowercase))
  validation = translation_validation.TranslationValidation(config, TASK, None)
  found = validation.translate(None, PAIRS, "validation")
  references = [[reference for _, reference in PAIRS]]
  expected = {
    (name, case): sacrebleu.corpus_bleu(TRANSLATIONS, references, tokenize=name, lowercase=case).score
    for name in ("13a", "intl", "char")
    for case in (False, True)
  }
  assert len(set(expected.values())) == len(expected)  # the sentences tell all of them apart
  assert found == TRANSLATIONS
  assert validation.scores(PAIRS, found).bleu == expected[tokenize, lowercase]


def test_the_test_has_all_sentences(tmp_path, monkeypatch):
  """However few validation translates."""
  monkeypatch.setattr(translation_validation, "Translator", Given)
  write_pairs(tmp_path / "text", PAIRS)
  data = DataConfig(corpus=Corpus.TEXT, validation="", test=str(tmp_path / "text"))
  config = Config(data=data, evaluate=EvaluateConfig(sentences=1))
  found = translation_validation.TranslationValidation(config, TASK, None).test(None)
  bleu = sacrebleu.corpus_bleu(TRANSLATIONS, [[reference for _, reference in PAIRS]]).score
  assert f"BLEU {bleu:.2f} " in found and "2 sentences" in found


def test_a_test_without_a_sentence_is_refused_before_the_training(tmp_path):
  for language in ("en", "de"):
    (tmp_path / f"text.{language}").write_text(" \n\n")
  config = Config(data=DataConfig(corpus=Corpus.TEXT, validation="", test=str(tmp_path / "text")))
  with pytest.raises(InputError, match=r"config\.data\.test = .*text has no sentence to translate: check it"):
    translation_validation.TranslationValidation(config, TASK, None)


def test_samples_are_three_lines_each_and_short(monkeypatch):
  long, wide = "word " * 40, "하나 " * 40
  pairs = [("a", long), (wide, "b"), ("c", "d"), ("e", "f")]
  monkeypatch.setattr(translation_validation, "Translator", Given)
  found = [[Translation(text, 0.0, 0.0, 1)] for text in "xyzu"]
  monkeypatch.setattr(Given, "translate_lines", lambda self, sentences, *, warn: iter(found))
  validation = translation_validation.TranslationValidation(Config(data=DataConfig(validation="")), TASK, None)
  assert validation.samples == ""
  validation.translate(None, pairs, "validation")
  lines = validation.samples.splitlines()
  assert lines[:2] == ["  source:      a", "  translation: x"] and lines[2].startswith("  reference:   word word")
  assert lines[6:] == ["  source:      c", "  translation: z", "  reference:   d"]
  assert all(disp_len(line) <= 80 for line in lines) and lines[2].endswith("...") and lines[3].endswith("...")


def test_the_exact_match_is_shown_of_numbers_only(tmp_path):
  of_numbers = Config(data=DataConfig(validation=""))
  (tmp_path / "text.en").write_text("a\n")
  (tmp_path / "text.de").write_text("b\n")
  of_text = Config(data=DataConfig(corpus=Corpus.TEXT, validation="", test=str(tmp_path / "text")))
  shown = [translation_validation.TranslationValidation(each, TASK, None).shown for each in (of_numbers, of_text)]
  assert [list(names) for names in shown] == [["bleu", "chrf", "exact_match"], ["bleu", "chrf"]]
  assert shown[0]["exact_match"].format(0.987) == "exact match 98.7%"


def test_the_validation_is_of_the_validation_text(tmp_path, monkeypatch):
  """Its loss and its translations."""
  for name, pairs in (("train", [("x", "y")]), ("valid", PAIRS)):
    write_pairs(tmp_path / name, pairs)
  read = []

  def losses(config, task, which, tokenizer):
    read.append(which)
    return SimpleNamespace(means=lambda params: {"loss": 1.0})

  monkeypatch.setattr(translation_validation, "Evaluator", losses)
  monkeypatch.setattr(translation_validation, "Translator", Given)
  data = DataConfig(corpus=Corpus.TEXT, train=f"{tmp_path}/train", validation=f"{tmp_path}/valid", test="")
  line = translation_validation.TranslationValidation(Config(data=data), TASK, None).measure(None)
  assert read == [data.validation] and [sample["source"] for sample in line["samples"]] == ["a", "b"]


def test_each_measurement_translates_with_the_parameters_that_it_is_given(monkeypatch):
  used = []

  class Noted(Given):
    def translate_lines(self, sentences, *, warn):
      used.append(self.params)
      return super().translate_lines(sentences, warn=warn)

  monkeypatch.setattr(translation_validation, "Translator", Noted)
  validation = translation_validation.TranslationValidation(Config(data=DataConfig(validation="")), TASK, None)
  for params in ("of step 3", "of step 6"):
    validation.translate(params, PAIRS, "validation")
  assert used == ["of step 3", "of step 6"]


def test_sentences_in_parts_are_told_once_for_each_text(monkeypatch, capfd):
  class Warning(Given):
    def translate_lines(self, sentences, *, warn):
      for line in (1, 2):
        warn(LineWarning(line, "has more than 9 tokens: it is translated in 2 parts"))
      return super().translate_lines(sentences, warn=warn)

  monkeypatch.setattr(translation_validation, "Translator", Warning)
  validation = translation_validation.TranslationValidation(Config(data=DataConfig(validation="")), TASK, None)
  for name in ("validation", "validation", "test"):
    validation.translate(None, PAIRS, name)
  told = "a sentence has more than 9 tokens:\n  it is translated in 2 parts\n  (1 more sentence like it)\n"
  assert capfd.readouterr().err == f"config.data.validation: {told}config.data.test: {told}"


def test_a_validation_without_a_finite_loss_has_no_samples_of_the_one_before(monkeypatch):
  monkeypatch.setattr(translation_validation, "Translator", Given)
  validation = translation_validation.TranslationValidation(Config(data=DataConfig(validation="")), TASK, None)
  losses = iter([1.0, float("nan")])
  validation._evaluator, validation._pairs = SimpleNamespace(means=lambda params: {"loss": next(losses)}), PAIRS
  assert "samples" in validation.measure(None) and validation.samples != ""
  assert validation.measure(None).keys() == {"loss"} and validation.samples == ""
